//! What tasks of 2025-11-25 may cost, and whose they are.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::protocol::TaskSupport;
use mcp_sansio_handlers::{Call, Endpoint, NoArguments, TaskEvent};
use serde_json::{Value, json};

use crate::legacy_task_client::LegacyTaskClient;
use crate::legacy_tasks::{server, server_with};
use crate::task_client::{Gate, settings};

fn visitor() -> (Gate, LegacyTaskClient) {
    let gate = Gate::default();
    let visitor = LegacyTaskClient::new(&server(&gate));
    (gate, visitor)
}

#[test]
fn a_client_may_ask_for_less_time_but_not_for_more_than_there_is_or_is_of_use() {
    // Rule: [TASK-001] [TASK-011] [TASK-023].
    let (_, mut visitor) = visitor();
    for (asked, granted) in [
        (json!({ "ttl": 5000 }), 5000),
        (json!({ "ttl": 5000.0 }), 5000),
        (json!({}), 60_000),
        (json!({ "ttl": 9_007_199_254_740_991_u64 }), 60_000),
        (json!({ "ttl": 0 }), 1000),
    ] {
        let params = json!({ "name": "slow", "task": asked });
        let created = visitor.result("tools/call", params);
        assert_eq!(created["task"]["ttl"], granted, "{asked}");
        let name = created["task"]["taskId"].as_str().unwrap();
        assert_eq!(visitor.get(name)["ttl"], granted, "{asked}");
    }
}

#[test]
fn a_task_whose_time_is_over_is_unknown_to_all() {
    // Rule: [TASK-011] [TASK-019] [TASK-023].
    let (gate, mut visitor) = visitor();
    let held = gate.holders();
    let task = visitor.task("slow");
    let waiting = visitor.send("tasks/result", json!({ "taskId": task }));
    assert_eq!(visitor.endpoint.poll_timeout(), Some(Instant::from_millis(60_000)));
    // The time is over, whether or not the driver has noticed.
    visitor.now = Instant::from_millis(60_000);
    assert_eq!(visitor.error("tasks/get", json!({ "taskId": task })), -32602);
    assert_eq!(visitor.result("tasks/list", json!({})), json!({ "tasks": [] }));
    assert_eq!(visitor.answer(waiting), None);
    visitor.pass(Duration::ZERO);
    assert_eq!(gate.holders(), held);
    assert_eq!(visitor.answer(waiting).unwrap()["error"]["code"], -32602);
    assert_eq!(visitor.endpoint.poll_timeout(), None);
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for name in [json!(task), json!("nobody"), json!(7), Value::Null] {
            assert_eq!(visitor.error(method, json!({ "taskId": name })), -32602, "{method}");
        }
    }
}

#[test]
fn listing_returns_every_task_once_while_tasks_come_and_go() {
    // Rule: [TASK-017] [TASK-019].
    let (_, mut visitor) = visitor();
    let mut tasks: Vec<String> = Vec::new();
    for _ in 0..250 {
        tasks.push(visitor.task("quick"));
    }
    let first = visitor.result("tasks/list", json!({}));
    let cursor = first["nextCursor"].as_str().unwrap().to_owned();
    let second = visitor.result("tasks/list", json!({ "cursor": cursor }));
    let cursor = second["nextCursor"].as_str().unwrap().to_owned();
    let third = visitor.result("tasks/list", json!({ "cursor": cursor }));
    assert!(third.get("nextCursor").is_none());
    let pages = [&first, &second, &third];
    assert_eq!(pages.map(|page| page["tasks"].as_array().unwrap().len()), [100, 100, 50]);
    let listed: Vec<&str> = pages
        .iter()
        .flat_map(|page| page["tasks"].as_array().unwrap())
        .map(|task| task["taskId"].as_str().unwrap())
        .collect();
    assert_eq!(listed, tasks);
    assert_eq!(first["tasks"][0], visitor.get(&tasks[0]));
    for cursor in [json!("251"), json!("0"), json!("-1"), json!(""), json!("x"), json!(100)] {
        assert_eq!(visitor.error("tasks/list", json!({ "cursor": cursor })), -32602, "{cursor}");
    }
    let last = visitor.result("tasks/list", json!({ "cursor": "250" }));
    assert_eq!(last, json!({ "tasks": [] }));
}

#[test]
fn one_task_too_many_is_refused_and_does_nothing() {
    // Rule: [TASK-023].
    for few in
        [settings().tasks_max(2), settings().tasks_per_requestor_max(2), settings().bytes_max(40)]
    {
        let gate = Gate::default();
        let mut visitor = LegacyTaskClient::new(&server_with(&gate, few));
        let held = gate.holders();
        visitor.task("slow");
        visitor.task("slow");
        assert_eq!(gate.holders(), held + 2);
        let params = json!({ "name": "slow", "arguments": {}, "task": {} });
        assert_eq!(visitor.error("tools/call", params.clone()), -32603);
        assert_eq!(gate.holders(), held + 2);
        // A call is a call.
        let call = visitor.send("tools/call", json!({ "name": "slow" }));
        gate.open();
        visitor.pump();
        assert!(visitor.answer(call).unwrap()["result"]["content"].is_array());
        visitor.pass(Duration::from_secs(60));
        assert!(visitor.result("tools/call", params)["task"].is_object());
    }
}

#[test]
fn task_requests_are_rate_limited_per_second() {
    // Rule: [TASK-019] [TASK-023].
    let (_, mut visitor) = visitor();
    let task = visitor.task("slow");
    let mut answered = 0;
    loop {
        let response = visitor.response("tasks/get", json!({ "taskId": task }));
        if response.get("error").is_some() {
            assert_eq!(response["error"]["code"], -32603);
            break;
        }
        answered += 1;
    }
    assert!((64..200).contains(&answered), "{answered}");
    assert_eq!(visitor.error("tasks/cancel", json!({ "taskId": task })), -32603);
    visitor.pass(Duration::from_secs(1));
    assert_eq!(visitor.status(&task), "working");
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
    let mut visitor =
        LegacyTaskClient::new(&server.task_support("ask_nothing", TaskSupport::Optional));
    let task = visitor.task("slow");
    let waiting: Vec<u64> =
        (0..60).map(|_| visitor.send("tasks/result", json!({ "taskId": task }))).collect();
    // The newest go on waiting: on HTTP the others may be gone.
    let (refused, left) = waiting.split_at(56);
    for id in refused {
        assert_eq!(visitor.answer(*id).unwrap()["error"]["code"], -32603);
    }
    visitor.tell("notifications/cancelled", json!({ "requestId": left[0] }));
    gate.open();
    visitor.pump();
    assert_eq!(visitor.answer(left[0]), None);
    for id in &left[1..] {
        assert!(visitor.answer(*id).unwrap()["result"]["content"].is_array());
    }
    // Nor can those who wait for many tasks keep others out.
    let tasks: Vec<String> = (0..20).map(|_| visitor.task("ask_nothing")).collect();
    for task in &tasks {
        for _ in 0..4 {
            visitor.send("tasks/result", json!({ "taskId": task }));
        }
    }
    assert_eq!(visitor.error("tools/call", json!({ "name": "slow" })), -32603);
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
    let mut visitor = LegacyTaskClient::new(&server_with(&gate, settings));
    let task = visitor.task("slow");
    visitor.send("tasks/result", json!({ "taskId": task }));
    gate.open();
    visitor.pump();
    visitor.pass(Duration::from_secs(60));
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
