//! Tasks of 2025-11-25 on several nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::legacy_task_client::RELATED;
use crate::task_client::Gate;
use crate::task_cluster::{ClusterClient, TaskCluster, server};

fn result_of(cluster: &mut TaskCluster, at: usize, client: &ClusterClient, task: &str) -> Value {
    cluster.about(at, client, "tasks/result", task)
}

#[test]
fn the_result_of_a_task_is_returned_by_any_node() {
    // Rule: [TASK-013] [TASK-014].
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "slow");
    assert_eq!(cluster.status(1, &client, &task), "working");
    let waiting = cluster.send(1, &client, "tasks/result", json!({ "taskId": task }));
    assert!(cluster.read(waiting).messages.is_empty());
    gate.open();
    // The node that runs the task tells the other one.
    cluster.settle();
    let result = cluster.read(waiting).only()["result"].clone();
    assert_eq!(result["content"][0]["text"], "slow");
    assert_eq!(result["_meta"][RELATED]["taskId"], task);
    for at in 0..2 {
        assert_eq!(result_of(&mut cluster, at, &client, &task)["result"], result);
    }
}

#[test]
fn a_lost_message_delays_a_result_by_a_second() {
    // Rule: [TASK-013].
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "slow");
    let waiting = cluster.send(1, &client, "tasks/result", json!({ "taskId": task }));
    gate.open();
    cluster.lose_messages(true);
    cluster.settle();
    assert!(cluster.read(waiting).messages.is_empty());
    cluster.pass(Duration::from_secs(1));
    assert_eq!(cluster.read(waiting).only()["result"]["content"][0]["text"], "slow");
}

#[test]
fn a_task_is_cancelled_before_the_answer_at_any_node() {
    // Rule: [TASK-018].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "slow");
    let waiting = cluster.send(1, &client, "tasks/result", json!({ "taskId": task }));
    let cancelled = cluster.about(1, &client, "tasks/cancel", &task);
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    assert_eq!(cancelled["result"]["taskId"], task);
    assert_eq!(cluster.running(0), 0);
    assert!(cluster.read(waiting).only()["error"].is_object());
    for at in 0..2 {
        assert_eq!(cluster.status(at, &client, &task), "cancelled");
        let again = cluster.about(at, &client, "tasks/cancel", &task);
        assert_eq!(again["error"]["code"], -32602);
    }
}

#[test]
fn a_lost_message_to_cancel_a_task_is_sent_again() {
    // Rule: [TASK-018].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "slow");
    cluster.lose_messages(true);
    let cancelling = cluster.send(1, &client, "tasks/cancel", json!({ "taskId": task }));
    cluster.lose_messages(false);
    cluster.pass(Duration::from_secs(4));
    assert!(cluster.read(cancelling).messages.is_empty());
    cluster.pass(Duration::from_secs(2));
    assert_eq!(cluster.read(cancelling).only()["result"]["status"], "cancelled");
}

#[test]
fn the_node_of_a_task_tells_that_it_is_cancelled_when_the_store_has_it() {
    // Rule: [TASK-018].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "slow");
    cluster.hold();
    let cancelling = cluster.send(0, &client, "tasks/cancel", json!({ "taskId": task }));
    let asking = cluster.send(0, &client, "tasks/get", json!({ "taskId": task }));
    assert_eq!(cluster.running(0), 0);
    assert!(cluster.read(cancelling).messages.is_empty());
    assert!(cluster.read(asking).messages.is_empty());
    cluster.release();
    for answered in [cancelling, asking] {
        assert_eq!(cluster.read(answered).only()["result"]["status"], "cancelled");
    }
}

#[test]
fn a_task_that_its_node_cannot_be_told_to_cancel_is_refused() {
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "slow");
    assert_eq!(cluster.status(1, &client, &task), "working");
    cluster.cut(1, true);
    let refused = cluster.send(1, &client, "tasks/cancel", json!({ "taskId": task }));
    assert_eq!(cluster.read(refused).status, 503);
    assert_eq!(cluster.running(0), 1);
}

#[test]
fn input_requests_reach_the_client_through_any_node() {
    // Rule: [TASK-015] [TASK-048].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "ask");
    assert_eq!(cluster.status(1, &client, &task), "input_required");
    let waiting = cluster.send(1, &client, "tasks/result", json!({ "taskId": task }));
    let asked = cluster.read(waiting).only();
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(asked["params"]["_meta"][RELATED]["taskId"], task);
    // The answer comes to the other node.
    cluster.answer(0, &client, &asked["id"], &json!({ "action": "accept", "content": {} }));
    let done = cluster.read(waiting).only();
    assert_eq!(done["result"]["content"][0]["text"], r#"Some("kept") true"#);
    assert_eq!(cluster.status(0, &client, &task), "completed");
}

#[test]
fn the_first_of_two_answers_counts() {
    // Rule: [TASK-015].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "ask");
    let results = [0, 1].map(|at| {
        let waiting = cluster.send(at, &client, "tasks/result", json!({ "taskId": task }));
        let asked = cluster.read(waiting).only();
        assert_eq!(asked["method"], "elicitation/create");
        (waiting, asked["id"].clone())
    });
    cluster.answer(1, &client, &results[1].1, &json!({ "action": "accept", "content": {} }));
    for (waiting, _) in results {
        let messages = cluster.read(waiting).messages;
        let done = messages.last().unwrap();
        assert_eq!(done["result"]["content"][0]["text"], r#"Some("kept") true"#);
    }
}

#[test]
fn a_client_answers_a_question_of_a_task_once() {
    // Rule: [TASK-015].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "ask");
    let waiting = cluster.send(1, &client, "tasks/result", json!({ "taskId": task }));
    let asked = cluster.read(waiting).only();
    // The answer does not arrive at the node of the task.
    cluster.lose_messages(true);
    cluster.answer(1, &client, &asked["id"], &json!({ "action": "accept", "content": {} }));
    cluster.pass(Duration::from_secs(3));
    assert!(cluster.read(waiting).messages.is_empty());
    cluster.lose_messages(false);
    let again = cluster.send(1, &client, "tasks/result", json!({ "taskId": task }));
    let asked = cluster.read(again).only();
    cluster.answer(1, &client, &asked["id"], &json!({ "action": "accept", "content": {} }));
    for waiting in [waiting, again] {
        assert!(cluster.read(waiting).only()["result"].is_object());
    }
}

#[test]
fn a_late_answer_does_not_count_for_the_next_round() {
    // Rule: [TASK-015].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "ask_twice");
    let [first, second] = [0, 1].map(|at| {
        let waiting = cluster.send(at, &client, "tasks/result", json!({ "taskId": task }));
        (waiting, cluster.read(waiting).only()["id"].clone())
    });
    let accepted = json!({ "action": "accept", "content": {} });
    // The other node does not learn of the next round.
    cluster.lose_messages(true);
    cluster.answer(0, &client, &first.1, &accepted);
    let next = cluster.read(first.0).only();
    assert_eq!(next["method"], "elicitation/create");
    cluster.lose_messages(false);
    cluster.answer(1, &client, &second.1, &accepted);
    assert_eq!(cluster.status(0, &client, &task), "input_required");
    cluster.answer(0, &client, &next["id"], &accepted);
    assert_eq!(cluster.read(first.0).only()["result"]["content"][0]["text"], "done");
}

#[test]
fn all_nodes_list_the_same_tasks() {
    // Rule: [TASK-017] [TASK-021].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let (client, other) = (cluster.enter(0, Some("owner")), cluster.enter(1, Some("other")));
    let mut created: BTreeSet<String> = BTreeSet::new();
    for at in 0..120 {
        created.insert(cluster.task(at % 2, &client, "ask"));
        if at % 50 == 0 {
            cluster.pass(Duration::from_secs(1));
        }
    }
    for at in 0..2 {
        let first = cluster.ask(at, &client, "tasks/list", json!({}))["result"].clone();
        assert_eq!(first["tasks"].as_array().unwrap().len(), 100);
        let cursor = json!({ "cursor": first["nextCursor"] });
        let second = cluster.ask(1 - at, &client, "tasks/list", cursor)["result"].clone();
        assert_eq!(second.get("nextCursor"), None);
        let tasks = [first, second].map(|page| page["tasks"].as_array().unwrap().clone()).concat();
        let listed = tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned());
        assert_eq!(listed.collect::<BTreeSet<_>>(), created);
        let others = cluster.ask(at, &other, "tasks/list", json!({}));
        assert_eq!(others["result"]["tasks"], json!([]));
        // Rule: [TASK-019].
        let unknown = cluster.ask(at, &client, "tasks/list", json!({ "cursor": "x" }));
        assert_eq!(unknown["error"]["code"], -32602);
    }
}

#[test]
fn a_task_without_a_principal_belongs_to_its_session_on_all_nodes() {
    // Rule: [TASK-021].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let (client, other) = (cluster.enter(0, None), cluster.enter(1, None));
    let task = cluster.task(0, &client, "slow");
    for at in 0..2 {
        for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
            let found = cluster.about(at, &other, method, &task);
            assert_eq!(found["error"]["code"], -32602, "{method}");
        }
        assert_eq!(cluster.status(at, &client, &task), "working");
    }
    // Tasks of the other kind do not exist either.
    let modern = ClusterClient::modern(None);
    assert_eq!(cluster.about(1, &modern, "tasks/get", &task)["error"]["code"], -32602);
}

#[test]
fn the_result_of_a_task_whose_node_dies_is_an_error() {
    // Rule: [TASK-013] [TASK-020].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "slow");
    let waiting = cluster.send(1, &client, "tasks/result", json!({ "taskId": task }));
    let cancelling = {
        cluster.kill(0);
        cluster.send(1, &client, "tasks/cancel", json!({ "taskId": task }))
    };
    assert!(cluster.read(waiting).messages.is_empty());
    cluster.pass(Duration::from_secs(25));
    let failed = cluster.read(waiting).messages.pop().unwrap();
    assert!(failed["error"]["message"].as_str().unwrap().contains("has failed"), "{failed}");
    let cancelled = cluster.read(cancelling).messages.pop().unwrap();
    assert_eq!(cancelled["error"]["code"], -32602, "{cancelled}");
    assert_eq!(cluster.status(1, &client, &task), "failed");
}

#[test]
fn a_node_that_has_lost_its_lease_stops_its_tasks() {
    // Rule: [TASK-009].
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    // A node that has just started does not know which of the others have started as well.
    cluster.pass(Duration::from_secs(15));
    let client = cluster.enter(0, Some("owner"));
    let task = cluster.task(0, &client, "slow");
    cluster.fail_lease(0);
    cluster.pass(Duration::from_secs(6));
    assert_eq!(cluster.running(0), 0);
    gate.open();
    for at in [1, 0] {
        assert_eq!(cluster.status(at, &client, &task), "failed");
    }
}

#[test]
fn a_task_has_one_end_for_the_clients_of_a_slow_node() {
    // Rule: [TASK-009] [TASK-013].
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let client = cluster.enter(0, Some("owner"));
    let (ended, kept) = (cluster.task(0, &client, "slow"), cluster.task(0, &client, "slow"));
    let waiting = [&ended, &kept]
        .map(|task| cluster.send(0, &client, "tasks/result", json!({ "taskId": task })));
    cluster.pause(0, true);
    cluster.pass(Duration::from_secs(20));
    cluster.hold();
    gate.open();
    cluster.pause(0, false);
    for waiting in waiting {
        assert!(cluster.read(waiting).messages.is_empty(), "the store decides");
    }
    // Another node ends one of the tasks before the store gets the result.
    let held = cluster.take_held();
    assert_eq!(cluster.status(1, &client, &ended), "failed");
    cluster.execute_all(held);
    let [failed, done] = waiting.map(|waiting| cluster.read(waiting).only());
    assert!(failed["error"].is_object(), "{failed}");
    assert_eq!(done["result"]["content"][0]["text"], "slow");
}

#[test]
fn few_requests_wait_for_a_task_of_another_node() {
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let client = cluster.enter(0, None);
    let task = cluster.task(0, &client, "slow");
    let first = cluster.send(1, &client, "tasks/result", json!({ "taskId": task }));
    for _ in 0..4 {
        assert!(cluster.read(first).messages.is_empty());
        cluster.send(1, &client, "tasks/result", json!({ "taskId": task }));
    }
    assert_eq!(cluster.read(first).only()["error"]["code"], -32603);
}

#[test]
fn each_client_may_ask_often_for_its_tasks_on_other_nodes() {
    // Rule: [TASK-023].
    let mut cluster = TaskCluster::new(&server(&Gate::default()));
    let clients: Vec<ClusterClient> = (0..80).map(|_| cluster.enter(0, None)).collect();
    let tasks: Vec<String> = clients.iter().map(|it| cluster.task(0, it, "slow")).collect();
    for (client, task) in clients.iter().zip(&tasks) {
        assert_eq!(cluster.status(1, client, task), "working");
    }
    // As often as for 256 tasks.
    let allowed = 256 * 4 + 64;
    let (client, task) = (&clients[0], &tasks[0]);
    let refused = |cluster: &mut TaskCluster| {
        cluster.about(1, client, "tasks/get", task)["error"]["code"] == -32603
    };
    let mut count = 1;
    while !refused(&mut cluster) {
        count += 1;
    }
    assert_eq!(count, allowed);
    assert_eq!(cluster.status(1, &clients[1], &tasks[1]), "working");
    cluster.pass(Duration::from_secs(1));
    assert!(!refused(&mut cluster));
}

#[test]
fn the_tasks_of_a_session_end_with_it_on_all_nodes() {
    // Rule: [TASK-021].
    let gate = Gate::default();
    let mut cluster = TaskCluster::new(&server(&gate));
    let (client, other) = (cluster.enter(0, None), cluster.enter(0, None));
    let known = cluster.enter(1, Some("ann"));
    let kept = [cluster.task(0, &other, "slow"), cluster.task(1, &known, "slow")];
    for at in 0..2 {
        cluster.task(at, &client, "slow");
    }
    assert_eq!([0, 1].map(|at| cluster.running(at)), [2, 2]);
    cluster.leave(0, &client);
    cluster.leave(1, &known);
    assert_eq!(cluster.store.task_count(cluster.now), 2, "those of others");
    assert_eq!([0, 1].map(|at| cluster.running(at)), [1, 1]);
    gate.open();
    cluster.settle();
    assert_eq!(cluster.status(1, &other, &kept[0]), "completed");
    // A principal finds its tasks in another session.
    let known = cluster.enter(0, Some("ann"));
    assert_eq!(cluster.status(0, &known, &kept[1]), "completed");
}
