use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::protocol::ElicitSchema;
use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::{Call, Elicit, NoArguments, Server, TaskSettings};
use serde_json::json;

use crate::task_client::{EPOCH, Gate, TaskClient, settings};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Amount {
    /// Length of the result.
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

fn client(settings: TaskSettings) -> (Gate, TaskClient) {
    let gate = Gate::default();
    let client = TaskClient::new(&server(&gate, settings));
    (gate, client)
}

#[test]
fn a_task_is_kept_until_its_ttl_expires() {
    // Rule: [TASK-035].
    let (gate, mut client) = client(settings());
    let held = gate.holders();
    let working = client.task("slow");
    client.pass(Duration::from_secs(30));
    let waiting = client.task("ask");
    assert_eq!(client.endpoint.poll_timeout(), Some(Instant::from_millis(60_000)));
    client.pass(Duration::from_millis(29_999));
    assert_eq!(client.status(&working), "working");
    // The task has expired, even if the driver has not handled the timeout yet.
    client.now = client.now + Duration::from_millis(1);
    assert_eq!(client.error("tasks/get", json!({ "taskId": working })), -32602);
    assert!(gate.holders() > held);
    client.pass(Duration::ZERO);
    assert_eq!(gate.holders(), held);
    assert_eq!(client.endpoint.poll_timeout(), Some(Instant::from_millis(90_000)));
    client.pass(Duration::from_secs(30));
    assert_eq!(client.error("tasks/cancel", json!({ "taskId": waiting })), -32602);
    assert_eq!(client.endpoint.poll_timeout(), None);
}

#[test]
fn a_finished_task_frees_its_slot_when_it_expires() {
    let (gate, mut client) = client(settings().tasks_max(2));
    client.task("slow");
    client.task("ask");
    // A call over the limit does not become a task.
    let call = client.send("tools/call", json!({ "name": "slow", "arguments": {} }));
    assert_eq!(client.answer(call), None);
    // Rule: [TASK-042].
    assert_eq!(client.call("ask")["resultType"], "input_required");
    gate.open();
    client.pump();
    assert_eq!(client.answer(call).unwrap()["result"]["content"][0]["text"], "slow");
    client.pass(Duration::from_secs(60));
    client.task("ask");
    client.task("ask");
    assert_eq!(client.call("ask")["resultType"], "input_required");
}

#[test]
fn the_bytes_of_tasks_are_bounded() {
    let (gate, mut client) = client(settings().bytes_max(8000));
    let long = |client: &mut TaskClient, bytes: usize| {
        let params = json!({ "name": "long", "arguments": { "bytes": bytes } });
        client.result("tools/call", params)["taskId"].as_str().unwrap().to_owned()
    };
    let (fits, too_long, after) =
        (long(&mut client, 3000), long(&mut client, 6000), long(&mut client, 1000));
    let waiting = client.task("ask");
    gate.open();
    assert_eq!(client.status(&fits), "completed");
    let failed = client.get(&too_long);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!(-32603)));
    assert_eq!(client.status(&after), "completed");
    // A refused update can be sent again with a shorter answer.
    let answer =
        |length: usize| json!({ "action": "accept", "content": { "n": "x".repeat(length) } });
    let update =
        |length| json!({ "taskId": waiting, "inputResponses": { "name": answer(length) } });
    assert_eq!(client.error("tasks/update", update(5000)), -32603);
    assert_eq!(client.status(&waiting), "input_required");
    client.result("tasks/update", update(10));
    assert_eq!(client.status(&waiting), "completed");
}

#[test]
fn duplicate_ids_do_not_create_a_task() {
    // Rule: [TASK-041].
    let (_, mut client) = client(TaskSettings::new(|| [7; 16], EPOCH));
    let task = client.task("slow");
    assert_eq!(task, "07".repeat(16));
    let call = client.send("tools/call", json!({ "name": "slow", "arguments": {} }));
    assert_eq!(client.answer(call), None);
}

#[test]
fn tasks_end_with_their_connection() {
    let (gate, mut client) = client(settings());
    let held = gate.holders();
    client.task("slow");
    client.endpoint.handle().close();
    client.pump();
    assert_eq!(gate.holders(), held);
    assert!(client.endpoint.is_drained());
}

#[test]
fn the_poll_interval_and_the_ttl_are_whole_milliseconds() {
    // Rule: [TASK-010].
    let settings = settings().ttl(Duration::MAX).poll_interval(Duration::from_micros(1));
    let (_, mut client) = client(settings);
    let created = client.call("slow");
    assert_eq!(created["ttlMs"], 9_007_199_254_740_991_u64);
    assert_eq!(created["pollIntervalMs"], 1);
}
