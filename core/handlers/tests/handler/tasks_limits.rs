use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::protocol::ElicitSchema;
use mcp_sansio_handlers::{Call, Elicit, Endpoint, NoArguments, Server, TaskSettings};
use serde_json::json;

use crate::task_client::{EPOCH, Gate, TaskClient, settings};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Amount {
    /// How much to say.
    bytes: usize,
}

fn server(gate: &Gate, settings: TaskSettings) -> Server {
    let [slow, long] = [(); 2].map(|()| gate.clone());
    Server::new("s", "1")
        .tasks(settings)
        .tool("slow", "", move |call: Call<NoArguments>| {
            let gate = slow.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                "slow"
            }
        })
        .tool("long", "", move |call: Call<Amount>| {
            let gate = long.clone();
            async move {
                call.run_as_task();
                gate.passed().await;
                "x".repeat(call.arguments.bytes)
            }
        })
        .tool("ask", "", |call: Call<NoArguments>| {
            call.run_as_task();
            match call.input::<serde_json::Value>("name")? {
                None => call
                    .require_input("name", Elicit::form_with("Who?", ElicitSchema::new()))
                    .into_result(),
                Some(_) => Ok("asked"),
            }
        })
}

fn desk(settings: TaskSettings) -> (Gate, TaskClient) {
    let gate = Gate::default();
    let desk = TaskClient::new(&server(&gate, settings));
    (gate, desk)
}

#[test]
fn a_task_is_kept_for_as_long_as_was_promised_and_no_longer() {
    // Rule: [TASK-035].
    let (gate, mut desk) = desk(settings());
    let held = gate.holders();
    let working = desk.task("slow");
    desk.pass(Duration::from_secs(30));
    let waiting = desk.task("ask");
    assert_eq!(desk.endpoint.poll_timeout(), Some(Instant::from_millis(60_000)));
    desk.pass(Duration::from_millis(29_999));
    assert_eq!(desk.status(&working), "working");
    // The time is over, whether or not the driver has noticed.
    desk.now = desk.now + Duration::from_millis(1);
    assert_eq!(desk.error("tasks/get", json!({ "taskId": working })), -32602);
    assert!(gate.holders() > held);
    desk.pass(Duration::ZERO);
    assert_eq!(gate.holders(), held);
    assert_eq!(desk.endpoint.poll_timeout(), Some(Instant::from_millis(90_000)));
    desk.pass(Duration::from_secs(30));
    assert_eq!(desk.error("tasks/cancel", json!({ "taskId": waiting })), -32602);
    assert_eq!(desk.endpoint.poll_timeout(), None);
}

#[test]
fn a_finished_task_makes_room_when_its_time_is_over() {
    let (gate, mut desk) = desk(settings().tasks_max(2));
    desk.task("slow");
    desk.task("ask");
    // A call beyond stays a call.
    let call = desk.send("tools/call", json!({ "name": "slow", "arguments": {} }));
    assert_eq!(desk.answer(call), None);
    // Rule: [TASK-042].
    assert_eq!(desk.call("ask")["resultType"], "input_required");
    gate.open();
    desk.pump();
    assert_eq!(desk.answer(call).unwrap()["result"]["content"][0]["text"], "slow");
    desk.pass(Duration::from_secs(60));
    desk.task("ask");
    desk.task("ask");
    assert_eq!(desk.call("ask")["resultType"], "input_required");
}

#[test]
fn tasks_hold_no_more_bytes_than_they_may() {
    let (gate, mut desk) = desk(settings().bytes_max(8000));
    let long = |desk: &mut TaskClient, bytes: usize| {
        let params = json!({ "name": "long", "arguments": { "bytes": bytes } });
        desk.result("tools/call", params)["taskId"].as_str().unwrap().to_owned()
    };
    let (fits, too_long, after) =
        (long(&mut desk, 3000), long(&mut desk, 6000), long(&mut desk, 1000));
    let waiting = desk.task("ask");
    gate.open();
    assert_eq!(desk.status(&fits), "completed");
    let failed = desk.get(&too_long);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!(-32603)));
    assert_eq!(desk.status(&after), "completed");
    // What is refused can be sent again, shorter.
    let answer =
        |length: usize| json!({ "action": "accept", "content": { "n": "x".repeat(length) } });
    let update =
        |length| json!({ "taskId": waiting, "inputResponses": { "name": answer(length) } });
    assert_eq!(desk.error("tasks/update", update(5000)), -32603);
    assert_eq!(desk.status(&waiting), "input_required");
    desk.result("tasks/update", update(10));
    assert_eq!(desk.status(&waiting), "completed");
}

#[test]
fn names_that_repeat_make_no_task() {
    // Rule: [TASK-041].
    let (_, mut desk) = desk(TaskSettings::new(|| [7; 16], EPOCH));
    let task = desk.task("slow");
    assert_eq!(task, "07".repeat(16));
    let call = desk.send("tools/call", json!({ "name": "slow", "arguments": {} }));
    assert_eq!(desk.answer(call), None);
}

#[test]
fn the_end_of_the_connection_ends_its_tasks() {
    let (gate, mut desk) = desk(settings());
    let held = gate.holders();
    desk.task("slow");
    desk.endpoint.handle().close();
    desk.pump();
    assert_eq!(gate.holders(), held);
    assert!(desk.endpoint.is_drained());
}

#[test]
fn a_poll_interval_and_a_time_to_live_are_whole_milliseconds() {
    // Rule: [TASK-010].
    let settings = settings().ttl(Duration::MAX).poll_interval(Duration::from_micros(1));
    let (_, mut desk) = desk(settings);
    let created = desk.call("slow");
    assert_eq!(created["ttlMs"], 9_007_199_254_740_991_u64);
    assert_eq!(created["pollIntervalMs"], 1);
}
