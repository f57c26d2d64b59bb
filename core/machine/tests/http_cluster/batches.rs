//! Batches of 2025-03-26: a message in a batch has the same effects on other nodes as one alone.

use mcp_sansio::peer::ServerMachine;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::scenarios::SOON;

const REVISION: &str = "2025-03-26";

/// Sends a message to node 1, alone or in a batch, and returns its effects: the status, the
/// end of a call at node 0, the fields of the session, and the notifications at node 0.
fn effects_of(batch: Option<&[Value]>, message: impl Fn(&Value) -> Value) -> String {
    let mut cluster = Cluster::new(3, 1);
    let session = cluster.initialize(0, REVISION);
    let stream = cluster.get(0, &session, None);
    let call = cluster.call(0, &session, 1, "ask-0");
    let long = cluster.call(0, &session, 2, "stream-4000");
    let question = cluster.replies[call].messages()[0].clone();
    // The node knows the session.
    cluster.call(1, &session, 3, "plain");
    let message = message(&question);
    let body = match batch {
        None => message,
        Some(others) => Value::from_iter(others.iter().cloned().chain([message])),
    };
    let reply = cluster.post(1, &session, &body);
    let status = cluster.replies[reply].status;
    cluster.advance(SOON);
    let now = cluster.now;
    cluster.server(0).resource_updated("mem://a", now);
    cluster.pump(0);
    cluster.advance(SOON);
    let ends = [call, long].map(|reply| {
        let reply = &cluster.replies[reply];
        let answered = reply.messages().iter().any(|message| message.get("result").is_some());
        (reply.complete, answered)
    });
    let methods: Vec<Value> =
        cluster.replies[stream].messages().iter().map(|it| it["method"].clone()).collect();
    format!("{status:?} {ends:?} {:?} {methods:?}", cluster.store.fields(&session))
}

#[test]
fn a_message_in_a_batch_has_the_effects_that_it_has_alone() {
    // Rule: [BATCH-007].
    let notification = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0",
        "method": format!("notifications/{method}"), "params": params})
    };
    let nothing = effects_of(None, |_| notification("unknown", json!({})));
    type Member<'a> = &'a dyn Fn(&Value) -> Value;
    let cases: [(&str, Member<'_>); 6] = [
        (
            "a response",
            &|question| json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}),
        ),
        ("a cancellation", &|_| notification("cancelled", json!({"requestId": 2}))),
        ("a confirmation", &|_| notification("initialized", json!({}))),
        ("a subscription", &|_| {
            json!({"jsonrpc": "2.0", "id": 8,
            "method": "resources/subscribe", "params": {"uri": "mem://a"}})
        }),
        ("a log level", &|_| {
            json!({"jsonrpc": "2.0", "id": 8,
            "method": "logging/setLevel", "params": {"level": "error"}})
        }),
        ("a report", &|question| {
            notification("progress", json!({"progressToken": question["id"], "progress": 1}))
        }),
    ];
    for (name, message) in cases {
        let alone = effects_of(None, message);
        assert!(alone != nothing || name == "a report", "{name} has an effect");
        let unknown = notification("unknown", json!({}));
        for others in [&[][..], &[unknown]] {
            assert_eq!(effects_of(Some(others), message), alone, "{name} in a batch");
        }
    }
}

#[test]
fn a_batch_is_accepted_when_the_store_has_taken_its_answers() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.initialize(0, REVISION);
    let calls = [1, 2].map(|id| cluster.call(0, &session, id, "ask-0"));
    cluster.call(1, &session, 3, "plain");
    let answers = |cluster: &Cluster| {
        Value::from_iter(calls.iter().map(|call| {
            let question = cluster.replies[*call].messages()[0].clone();
            json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        }))
    };
    let body = answers(&cluster);
    cluster.store_down_until = cluster.now + Duration::from_millis(300);
    let refused = cluster.post(1, &session, &body);
    assert_eq!(cluster.replies[refused].status, Some(503));
    let accepted = cluster.post(1, &session, &body);
    assert_eq!(cluster.replies[accepted].status, Some(202));
    cluster.advance(SOON);
    for (id, call) in (1..).zip(calls) {
        assert_eq!(cluster.replies[call].messages()[1]["id"], id);
    }
}
