//! Tasks of 2026-07-28 on several nodes.

use std::time::Duration;

use mcp_sansio::http::SharedOptions;
use serde_json::json;

use crate::task_client::{Gate, assert_empty};
use crate::task_cluster::{ClusterClient, TaskCluster, server};

const NODE_FAILED: &str = "the server that ran this task has failed; its outcome is unknown";

fn owner() -> ClusterClient {
    ClusterClient::modern(Some("owner"))
}

#[test]
fn every_node_knows_a_task_once_its_client_does() {
    // Rule: [TASK-029] [TASK-030].
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let task = cluster.task(0, &owner(), "slow");
    let here = cluster.about(0, &owner(), "tasks/get", &task)["result"].clone();
    let there = cluster.about(1, &owner(), "tasks/get", &task)["result"].clone();
    assert_eq!(here["status"], "working");
    assert_eq!(here, there);
    gate.open();
    cluster.settle();
    let here = cluster.about(0, &owner(), "tasks/get", &task)["result"].clone();
    let there = cluster.about(1, &owner(), "tasks/get", &task)["result"].clone();
    assert_eq!(there["result"]["content"][0]["text"], "slow");
    assert_eq!(here, there);
}

#[test]
fn every_node_sends_input_requests_only_to_requests_that_declare_support() {
    // Rule: [MRTR-005] [CAP-020].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let task = cluster.task(0, &owner(), "ask_twice");
    let mut other = owner();
    other.capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    for node in [0, 1] {
        let refused = cluster.about(node, &other, "tasks/get", &task);
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
        assert_eq!(cluster.status(node, &owner(), &task), "input_required");
    }
}

#[test]
fn a_task_is_announced_when_the_store_has_it() {
    // Rule: [TASK-029].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    cluster.hold();
    let call = json!({ "name": "slow", "arguments": {} });
    let called = cluster.send(0, &owner(), "tools/call", call);
    assert_eq!(cluster.read(called).status, 0, "not answered");
    cluster.release();
    let created = cluster.read(called).only();
    let task = created["result"]["taskId"].as_str().unwrap();
    assert_eq!(cluster.status(1, &owner(), task), "working");
}

#[test]
fn a_task_is_cancelled_at_any_node() {
    // Rule: [TASK-033] [TASK-034].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let task = cluster.task(0, &owner(), "slow");
    assert_eq!(cluster.running(0), 1);
    assert_empty(&cluster.about(1, &owner(), "tasks/cancel", &task)["result"]);
    assert_eq!(cluster.running(0), 0);
    for at in 0..2 {
        assert_eq!(cluster.status(at, &owner(), &task), "cancelled");
        assert_empty(&cluster.about(at, &owner(), "tasks/cancel", &task)["result"]);
    }
}

#[test]
fn input_requests_are_answered_at_any_node() {
    // Rule: [TASK-030] [TASK-033].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let task = cluster.task(0, &owner(), "ask");
    let asked = cluster.about(1, &owner(), "tasks/get", &task);
    assert!(asked["result"]["inputRequests"]["name"].is_object(), "{asked}");
    let invalid = cluster.ask(1, &owner(), "tasks/update", json!({ "taskId": task }));
    assert_eq!(invalid["error"]["code"], -32602);
    let answer = json!({ "taskId": task, "inputResponses": { "name": { "action": "accept" } } });
    assert_empty(&cluster.ask(1, &owner(), "tasks/update", answer)["result"]);
    let done = cluster.about(1, &owner(), "tasks/get", &task);
    assert_eq!(done["result"]["result"]["content"][0]["text"], r#"Some("kept") true"#);
}

#[test]
fn a_task_does_not_exist_for_another_principal_on_any_node() {
    // Rule: [TASK-035] [TASK-041].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let task = cluster.task(0, &owner(), "slow");
    let others = [ClusterClient::modern(Some("other")), ClusterClient::modern(None)];
    for at in 0..2 {
        for other in &others {
            for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                let params = |task: &str| json!({ "taskId": task, "inputResponses": {} });
                let unknown = cluster.ask(at, other, method, params("nobody"))["error"].clone();
                assert_eq!(unknown["code"], -32602);
                assert_eq!(cluster.ask(at, other, method, params(&task))["error"], unknown);
            }
        }
    }
    assert_eq!(cluster.status(1, &owner(), &task), "working");
    // The id is the secret of a task without a principal.
    let task = cluster.task(0, &others[1], "slow");
    assert_eq!(cluster.status(1, &others[1], &task), "working");
    assert_eq!(cluster.about(1, &owner(), "tasks/get", &task)["error"]["code"], -32602);
}

#[test]
fn the_tasks_of_a_node_that_dies_have_failed() {
    // Rule: [TASK-030] [TASK-037].
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let lost = cluster.task(0, &owner(), "ask");
    let done = cluster.task(0, &owner(), "slow");
    let other = cluster.task(1, &owner(), "ask");
    gate.open();
    cluster.settle();
    cluster.kill(0);
    cluster.pass(Duration::from_secs(10));
    assert_eq!(cluster.status(1, &owner(), &lost), "input_required", "its lease is valid");
    cluster.pass(Duration::from_secs(15));
    let failed = cluster.about(1, &owner(), "tasks/get", &lost)["result"].clone();
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["error"]["message"], NODE_FAILED);
    assert_eq!(failed["statusMessage"], NODE_FAILED);
    assert!(failed.get("inputRequests").is_none(), "{failed}");
    assert_empty(&cluster.about(1, &owner(), "tasks/cancel", &lost)["result"]);
    assert_eq!(cluster.status(1, &owner(), &done), "completed");
    assert_eq!(cluster.status(1, &owner(), &other), "input_required");
}

#[test]
fn a_slow_node_stops_a_task_that_another_one_has_ended() {
    // Rule: [TASK-009].
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let task = cluster.task(0, &owner(), "slow");
    cluster.pause(0, true);
    cluster.pass(Duration::from_secs(20));
    assert_eq!(cluster.status(1, &owner(), &task), "failed");
    cluster.pause(0, false);
    assert_eq!(cluster.running(0), 1);
    assert_eq!(cluster.status(0, &owner(), &task), "failed", "although its timers are late");
    cluster.pass(Duration::from_secs(20));
    assert_eq!(cluster.running(0), 0);
    assert_eq!(cluster.status(0, &owner(), &task), "failed");
    assert_eq!(cluster.status(1, &owner(), &task), "failed");
}

#[test]
fn a_slow_node_continues_its_tasks_if_no_other_has_ended_them() {
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let task = cluster.task(0, &owner(), "slow");
    cluster.pause(0, true);
    cluster.pass(Duration::from_secs(60 - 30));
    cluster.pause(0, false);
    assert_eq!(cluster.status(0, &owner(), &task), "working");
    cluster.pass(Duration::from_secs(1));
    gate.open();
    cluster.settle();
    assert_eq!(cluster.status(1, &owner(), &task), "completed");
}

#[test]
fn a_node_serves_its_tasks_while_the_store_is_not_available() {
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let task = cluster.task(0, &owner(), "slow");
    cluster.cut(0, true);
    cluster.cut(1, true);
    cluster.pass(Duration::from_secs(20));
    assert_eq!(cluster.status(0, &owner(), &task), "working");
    let refused = cluster.send(1, &owner(), "tasks/get", json!({ "taskId": task }));
    assert_eq!(cluster.read(refused).status, 503);
    // A call stays a call.
    let called =
        cluster.send(0, &owner(), "tools/call", json!({ "name": "slow", "arguments": {} }));
    assert_eq!(cluster.read(called).messages.len(), 0);
    gate.open();
    cluster.settle();
    assert_eq!(cluster.read(called).only()["result"]["content"][0]["text"], "slow");
    assert_eq!(cluster.status(0, &owner(), &task), "completed");
    cluster.cut(0, false);
    cluster.cut(1, false);
    cluster.pass(Duration::from_secs(5));
    assert_eq!(cluster.status(1, &owner(), &task), "completed", "it was written again");
}

#[test]
fn a_task_that_cannot_be_stored_is_not_created() {
    let mut options = SharedOptions::new();
    let call = || json!({ "name": "slow", "arguments": {} });
    let mut cluster = TaskCluster::with(&server(&Gate::default()), &options);
    cluster.cut(0, true);
    let called = cluster.send(0, &owner(), "tools/call", call());
    assert_eq!(cluster.read(called).status, 503);
    assert_eq!(cluster.running(0), 0);
    // The store may have executed an action that has failed.
    cluster.cut(0, false);
    cluster.pass(Duration::from_secs(6));
    assert_eq!(cluster.status(1, &owner(), &format!("{:032x}", 1)), "cancelled");
    options.keep_locally = true;
    let mut cluster = TaskCluster::with(&server(&Gate::default()), &options);
    cluster.cut(0, true);
    let task = cluster.task(0, &owner(), "slow");
    cluster.cut(0, false);
    cluster.pass(Duration::from_secs(6));
    assert_eq!(cluster.status(1, &owner(), &task), "working");
}

#[test]
fn nodes_store_their_tasks_again_in_an_empty_store() {
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let task = cluster.task(0, &owner(), "slow");
    cluster.store.empty();
    // It may be stored again, so it is not unknown yet.
    let refused = cluster.send(1, &owner(), "tasks/get", json!({ "taskId": task }));
    assert_eq!(cluster.read(refused).status, 503);
    cluster.pass(Duration::from_secs(6));
    assert_eq!(cluster.status(1, &owner(), &task), "working");
    cluster.pass(Duration::from_secs(20));
    assert_eq!(cluster.about(1, &owner(), "tasks/get", "nobody")["error"]["code"], -32602);
}

#[test]
fn a_state_that_the_store_has_lost_is_written_again() {
    // Rule: [TASK-029] [TASK-030] [TASK-038].
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let (done, asking) =
        (cluster.task(0, &owner(), "slow"), cluster.task(0, &owner(), "ask_twice"));
    let filter = json!({ "notifications": { "taskIds": [done] } });
    let listening = cluster.send(1, &owner(), "subscriptions/listen", filter);
    assert_eq!(cluster.read(listening).messages.len(), 1);
    // A failover does not have the creation of a task ...
    let created = cluster.now;
    cluster.pass(Duration::from_millis(200));
    cluster.store.lose_tasks(created);
    cluster.pass(Duration::from_secs(10));
    assert_eq!(cluster.status(1, &owner(), &done), "working");
    assert_eq!(cluster.status(1, &owner(), &asking), "input_required");
    // ... nor an input request ...
    let answer = json!({ "taskId": asking, "inputResponses": { "name": { "action": "accept" } } });
    let answered = cluster.now;
    assert_empty(&cluster.ask(0, &owner(), "tasks/update", answer)["result"]);
    let asked = cluster.about(1, &owner(), "tasks/get", &asking)["result"].clone();
    assert!(asked["inputRequests"]["name#2"].is_object(), "{asked}");
    cluster.store.lose_tasks(answered);
    cluster.pass(Duration::from_secs(10));
    assert_eq!(cluster.about(1, &owner(), "tasks/get", &asking)["result"], asked);
    let told_again = cluster.read(listening).only();
    assert_eq!(told_again["params"]["status"], "working");
    // ... nor an end.
    let ended = cluster.now;
    gate.open();
    cluster.settle();
    assert_eq!(cluster.read(listening).only()["params"]["status"], "completed");
    cluster.store.lose_tasks(ended);
    assert_eq!(cluster.status(1, &owner(), &done), "working");
    cluster.pass(Duration::from_secs(10));
    assert_eq!(cluster.status(1, &owner(), &done), "completed");
    assert_eq!(cluster.read(listening).only()["params"]["status"], "completed", "told again");
}

#[test]
fn an_end_that_was_stored_without_an_answer_is_kept() {
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let task = cluster.task(0, &owner(), "slow");
    let filter = json!({ "notifications": { "taskIds": [task] } });
    let listening = cluster.send(0, &owner(), "subscriptions/listen", filter);
    assert_eq!(cluster.read(listening).messages.len(), 1);
    cluster.hold();
    gate.open();
    cluster.settle();
    assert!(cluster.read(listening).messages.is_empty(), "the store does not have it yet");
    let held = cluster.take_held();
    assert_eq!(held.len(), 1);
    // The action fails, although the store has executed it.
    let put = held[0].1.clone();
    cluster.store.execute(put, cluster.now);
    cluster.cut(0, true);
    cluster.execute_all(held);
    cluster.cut(0, false);
    assert_eq!(cluster.read(listening).only()["params"]["status"], "completed");
    // It is written again, refused and compared.
    cluster.pass(Duration::from_secs(6));
    cluster.store.empty();
    cluster.pass(Duration::from_secs(6));
    assert_eq!(cluster.status(1, &owner(), &task), "completed");
}

#[test]
fn the_record_of_a_task_is_read_less_and_less() {
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    cluster.task(0, &owner(), "slow");
    let reads = |cluster: &TaskCluster| {
        cluster.store.executed.get("read task").copied().unwrap_or_default()
    };
    cluster.pass(Duration::from_secs(58));
    assert!((2..=4).contains(&reads(&cluster)), "{}", reads(&cluster));
    assert_eq!(cluster.store.executed["put task"], 1);
}

#[test]
fn a_node_that_an_empty_store_does_not_know_yet_has_not_failed() {
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    cluster.store.empty();
    cluster.pause(0, true);
    cluster.pass(Duration::from_secs(6));
    cluster.pause(0, false);
    let task = cluster.task(0, &owner(), "slow");
    assert_eq!(cluster.status(1, &owner(), &task), "working");
    cluster.kill(0);
    cluster.pass(Duration::from_secs(30));
    assert_eq!(cluster.status(1, &owner(), &task), "failed");
}

#[test]
fn clients_that_listen_at_another_node_are_notified() {
    // Rule: [TASK-038] [TASK-041].
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let task = cluster.task(0, &owner(), "slow");
    let filter = json!({ "notifications": { "taskIds": [task] } });
    let listening = cluster.send(1, &owner(), "subscriptions/listen", filter.clone());
    let other = ClusterClient::modern(Some("other"));
    let others = cluster.send(1, &other, "subscriptions/listen", filter);
    assert_eq!(cluster.read(listening).messages.len(), 1);
    assert_eq!(cluster.read(others).messages.len(), 1);
    gate.open();
    cluster.settle();
    let told = cluster.read(listening).only();
    assert_eq!(told["method"], "notifications/tasks");
    assert_eq!(told["params"]["status"], "completed");
    assert_eq!(told["params"]["result"]["content"][0]["text"], "slow");
    assert!(cluster.read(others).messages.is_empty());
}

#[test]
fn a_client_that_leaves_before_its_task_is_stored_has_cancelled_it() {
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    cluster.hold();
    let call = json!({ "name": "slow", "arguments": {} });
    let called = cluster.send(0, &owner(), "tools/call", call);
    assert_eq!(cluster.running(0), 1);
    cluster.disconnect(called);
    assert_eq!(cluster.running(0), 0);
    cluster.release();
    // The first of its ids.
    let task = format!("{:032x}", 1);
    assert_eq!(cluster.status(1, &owner(), &task), "cancelled");
}

#[test]
fn a_task_expires_on_all_nodes() {
    // Rule: [TASK-035].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let task = cluster.task(0, &owner(), "slow");
    cluster.pass(Duration::from_secs(59));
    assert_eq!(cluster.status(1, &owner(), &task), "working");
    cluster.pass(Duration::from_secs(2));
    for at in 0..2 {
        assert_eq!(cluster.about(at, &owner(), "tasks/get", &task)["error"]["code"], -32602);
    }
    assert_eq!(cluster.running(0), 0);
}

#[test]
fn only_requests_about_tasks_cost_an_action() {
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let before = cluster.store.executed.clone();
    let listed = cluster.ask(0, &owner(), "tools/list", json!({}));
    assert!(listed["result"]["tools"].is_array());
    assert_eq!(cluster.store.executed, before);
    let task = cluster.task(0, &owner(), "slow");
    cluster.status(0, &owner(), &task);
    cluster.status(1, &owner(), &task);
    let count = |name: &str| cluster.store.executed.get(name).copied().unwrap_or_default();
    assert_eq!((count("put task"), count("read task"), count("send")), (1, 1, 0));
}
