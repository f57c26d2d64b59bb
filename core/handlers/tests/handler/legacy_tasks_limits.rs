//! Limits and ownership of tasks of 2025-11-25.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::protocol::TaskSupport;
use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::{Call, NoArguments, TaskEvent};
use serde_json::{Value, json};

use crate::legacy_task_client::LegacyTaskClient;
use crate::legacy_tasks::{server, server_with};
use crate::task_client::{Gate, settings};

fn client() -> (Gate, LegacyTaskClient) {
    let gate = Gate::default();
    let client = LegacyTaskClient::new(&server(&gate));
    (gate, client)
}

#[test]
fn a_client_may_shorten_the_ttl_but_not_extend_it() {
    // Rule: [TASK-001] [TASK-011] [TASK-023].
    let (_, mut client) = client();
    for (asked, granted) in [
        (json!({ "ttl": 5000 }), 5000),
        (json!({ "ttl": 5000.0 }), 5000),
        (json!({}), 60_000),
        // As PHP writes an empty object.
        (json!([]), 60_000),
        (json!({ "ttl": 9_007_199_254_740_991_u64 }), 60_000),
        (json!({ "ttl": 0 }), 1000),
    ] {
        let params = json!({ "name": "slow", "task": asked });
        let created = client.result("tools/call", params);
        assert_eq!(created["task"]["ttl"], granted, "{asked}");
        let name = created["task"]["taskId"].as_str().unwrap();
        assert_eq!(client.get(name)["ttl"], granted, "{asked}");
    }
}

#[test]
fn an_expired_task_is_unknown() {
    // Rule: [TASK-011] [TASK-019] [TASK-023].
    let (gate, mut client) = client();
    let held = gate.holders();
    let task = client.task("slow");
    let waiting = client.send("tasks/result", json!({ "taskId": task }));
    assert_eq!(client.endpoint.poll_timeout(), Some(Instant::from_millis(60_000)));
    // The task has expired, even if the driver has not handled the timeout yet.
    client.now = Instant::from_millis(60_000);
    assert_eq!(client.error("tasks/get", json!({ "taskId": task })), -32602);
    assert_eq!(client.result("tasks/list", json!({})), json!({ "tasks": [] }));
    assert_eq!(client.answer(waiting), None);
    client.pass(Duration::ZERO);
    assert_eq!(gate.holders(), held);
    assert_eq!(client.answer(waiting).unwrap()["error"]["code"], -32602);
    assert_eq!(client.endpoint.poll_timeout(), None);
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for name in [json!(task), json!("nobody"), json!(7), Value::Null] {
            assert_eq!(client.error(method, json!({ "taskId": name })), -32602, "{method}");
        }
    }
}

#[test]
fn listing_returns_every_task_once_while_tasks_come_and_go() {
    // Rule: [TASK-017] [TASK-019].
    let (_, mut client) = client();
    let mut tasks: Vec<String> = Vec::new();
    for _ in 0..250 {
        tasks.push(client.task("quick"));
    }
    let first = client.result("tasks/list", json!({}));
    let cursor = first["nextCursor"].as_str().unwrap().to_owned();
    let second = client.result("tasks/list", json!({ "cursor": cursor }));
    let cursor = second["nextCursor"].as_str().unwrap().to_owned();
    let third = client.result("tasks/list", json!({ "cursor": cursor }));
    assert!(third.get("nextCursor").is_none());
    let pages = [&first, &second, &third];
    assert_eq!(pages.map(|page| page["tasks"].as_array().unwrap().len()), [100, 100, 50]);
    let listed: Vec<&str> = pages
        .iter()
        .flat_map(|page| page["tasks"].as_array().unwrap())
        .map(|task| task["taskId"].as_str().unwrap())
        .collect();
    assert_eq!(listed, tasks);
    assert_eq!(first["tasks"][0], client.get(&tasks[0]));
    for cursor in [json!("251"), json!("0"), json!("-1"), json!(""), json!("x"), json!(100)] {
        assert_eq!(client.error("tasks/list", json!({ "cursor": cursor })), -32602, "{cursor}");
    }
    let last = client.result("tasks/list", json!({ "cursor": "250" }));
    assert_eq!(last, json!({ "tasks": [] }));
}

#[test]
fn a_cursor_from_before_the_last_task_was_removed_skips_no_later_task() {
    // Rule: [TASK-017].
    let (_, mut client) = client();
    let ids: Vec<String> = (0..2).map(|_| client.task("quick")).collect();
    client.pass(Duration::from_secs(60));
    assert_eq!(client.error("tasks/get", json!({ "taskId": ids[0] })), -32602);
    assert_eq!(client.error("tasks/list", json!({ "cursor": "2" })), -32602);
    let later: Vec<String> = (0..3).map(|_| client.task("quick")).collect();
    let listed = client.result("tasks/list", json!({ "cursor": "2" }));
    let listed = listed["tasks"].as_array().unwrap().iter().map(|task| &task["taskId"]);
    assert!(listed.eq(&later));
}

#[test]
fn a_task_over_the_limit_is_refused_and_its_handler_does_not_run() {
    // Rule: [TASK-023].
    for few in
        [settings().tasks_max(2), settings().tasks_per_requestor_max(2), settings().bytes_max(40)]
    {
        let gate = Gate::default();
        let mut client = LegacyTaskClient::new(&server_with(&gate, few));
        let held = gate.holders();
        client.task("slow");
        client.task("slow");
        assert_eq!(gate.holders(), held + 2);
        let params = json!({ "name": "slow", "arguments": {}, "task": {} });
        assert_eq!(client.error("tools/call", params.clone()), -32603);
        assert_eq!(gate.holders(), held + 2);
        // A plain call is not limited.
        let call = client.send("tools/call", json!({ "name": "slow" }));
        gate.open();
        client.pump();
        assert!(client.answer(call).unwrap()["result"]["content"].is_array());
        client.pass(Duration::from_secs(60));
        assert!(client.result("tools/call", params)["task"].is_object());
    }
}

#[test]
fn task_requests_are_rate_limited_per_second() {
    // Rule: [TASK-019] [TASK-023].
    let (_, mut client) = client();
    let task = client.task("slow");
    let mut answered = 0;
    loop {
        let response = client.response("tasks/get", json!({ "taskId": task }));
        if response.get("error").is_some() {
            assert_eq!(response["error"]["code"], -32603);
            break;
        }
        answered += 1;
    }
    assert!((64..200).contains(&answered), "{answered}");
    assert_eq!(client.error("tasks/cancel", json!({ "taskId": task })), -32603);
    client.pass(Duration::from_secs(1));
    assert_eq!(client.status(&task), "working");
}

#[test]
fn the_number_of_waiting_requests_is_bounded_and_all_are_answered() {
    // Rule: [TASK-013].
    let gate = Gate::default();
    let mut limits = mcp_sansio::peer::Limits::default();
    limits.requests_in_flight_max = 50;
    let server =
        server(&gate).limits(limits).tool("ask_nothing", "", async |_: Call<NoArguments>| {
            std::future::pending::<()>().await;
        });
    let mut client =
        LegacyTaskClient::new(&server.task_support("ask_nothing", TaskSupport::Optional));
    let task = client.task("slow");
    let waiting: Vec<u64> =
        (0..60).map(|_| client.send("tasks/result", json!({ "taskId": task }))).collect();
    // The newest requests keep waiting: on HTTP the others may be gone.
    let (refused, left) = waiting.split_at(56);
    for id in refused {
        assert_eq!(client.answer(*id).unwrap()["error"]["code"], -32603);
    }
    client.tell("notifications/cancelled", json!({ "requestId": left[0] }));
    gate.open();
    client.pump();
    assert_eq!(client.answer(left[0]), None);
    for id in &left[1..] {
        assert!(client.answer(*id).unwrap()["result"]["content"].is_array());
    }
    // Clients that wait for many tasks do not block others.
    let tasks: Vec<String> = (0..20).map(|_| client.task("ask_nothing")).collect();
    for task in &tasks {
        for _ in 0..4 {
            client.send("tasks/result", json!({ "taskId": task }));
        }
    }
    assert_eq!(client.error("tools/call", json!({ "name": "slow" })), -32603);
}

#[test]
fn observers_see_every_task_event() {
    // Rule: [TASK-048].
    let seen = Arc::new(Mutex::new(Vec::new()));
    let news = Arc::clone(&seen);
    let settings = settings().observe(move |what: TaskEvent, task, principal| {
        assert!(principal.is_none());
        news.lock().unwrap().push((what, task.status.as_str().to_owned()));
    });
    let gate = Gate::default();
    let mut client = LegacyTaskClient::new(&server_with(&gate, settings));
    let task = client.task("slow");
    client.send("tasks/result", json!({ "taskId": task }));
    gate.open();
    client.pump();
    client.pass(Duration::from_secs(60));
    let expected = [
        (TaskEvent::Created, "working"),
        (TaskEvent::Changed, "completed"),
        (TaskEvent::Retrieved, "completed"),
        (TaskEvent::Dropped, "completed"),
    ];
    assert!(seen.lock().unwrap().iter().map(|(what, status)| (*what, &**status)).eq(expected));
}

#[test]
fn the_tasks_of_a_connection_end_with_it() {
    // Rule: [TASK-021].
    let gate = Gate::default();
    let server = server(&gate);
    let (mut one, mut other) = (LegacyTaskClient::new(&server), LegacyTaskClient::new(&server));
    let task = one.task("slow");
    assert_eq!(other.error("tasks/get", json!({ "taskId": task })), -32602);
    assert_eq!(other.result("tasks/list", json!({})), json!({ "tasks": [] }));
    let held = gate.holders();
    drop(one);
    assert_eq!(gate.holders(), held - 1);
}
