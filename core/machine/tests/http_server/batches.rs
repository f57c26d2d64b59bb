//! Arrays of messages, at the revision that has them.

use mcp_sansio::{Revision, Revisions};

use crate::fixtures::*;
use crate::reply::State;

const BATCHES: Revision = Revision::V2025_03_26;

#[test]
fn a_batch_of_requests_is_answered_with_an_array() {
    // Rule: [BATCH-001] [BATCH-007].
    let mut server = server();
    let session = server.open(BATCHES, "{}");
    let body = format!("[{},{},{}]", call(1), request(2, "ping", "{}"), cancel(99));
    let reply = server.post(&session, &body);
    assert_eq!(server.reply(reply).status, None, "one request is not answered");
    server.answer();
    let body = server.reply(reply).json();
    let ids: Vec<_> =
        body.as_array().unwrap().iter().map(|answer| answer["id"].to_string()).collect();
    assert_eq!(ids, ["2", "1"]);
}

#[test]
fn a_batch_without_a_request_is_accepted() {
    // Rule: [BATCH-006] [HSRV-008].
    let mut server = server();
    let session = server.open(BATCHES, "{}");
    for body in [
        format!("[{}]", cancel(1)),
        format!("[{0},{0}]", cancel(1)),
        r#"[{"jsonrpc":"2.0","id":5,"result":{}}]"#.into(),
    ] {
        let reply = server.post(&session, &body);
        assert_eq!(server.reply(reply).transcript(), "202\n", "{body}");
    }
}

#[test]
fn a_batch_on_a_stream_ends_it_with_all_of_its_responses() {
    // Rule: [BATCH-008] [BATCH-009] [SSE-002].
    let mut server = server();
    let session = server.open(BATCHES, "{}");
    let reply = server.post(&session, &format!("[{},{}]", call(1), call(2)));
    let (first, second) = (server.asked(), server.asked());
    server.progress(second.handle, 1.0);
    server.answer_to(second.handle);
    assert_eq!(server.reply(reply).state, State::UnderWay);
    server.progress(first.handle, 1.0);
    server.answer_to(first.handle);
    let reply = server.reply(reply);
    assert_eq!(reply.state, State::Complete);
    let messages = reply.messages();
    assert_eq!(messages.len(), 3);
    let answers = messages[2].as_array().unwrap();
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&2.into(), &1.into()));
}

#[test]
fn invalid_elements_get_their_own_errors() {
    // Rule: [BATCH-003] [BATCH-004].
    let mut server = server();
    let session = server.open(BATCHES, "{}");
    let reply = server.post(&session, &format!("[1,{}]", request(2, "ping", "{}")));
    let body = server.reply(reply).json();
    assert_eq!(body[0]["error"]["code"], -32600);
    assert_eq!(body[1]["id"], 2);
    let reply = server.post(&session, "[]");
    assert_eq!(server.reply(reply).status(), 400);
    assert_eq!(server.reply(reply).json()["error"]["code"], -32600);
    let reply = server.post(&session, &format!("[{}]", initialize(BATCHES, "{}")));
    assert_eq!(server.reply(reply).json()[0]["error"]["code"], -32600);
    assert_eq!(server.server.exchange_count(), 0);
}

#[test]
fn a_batch_outside_a_session_opens_no_session() {
    // Rule: [BATCH-004].
    let mut server = server();
    let reply = server.request("POST", "/mcp", &POST, &format!("[{}]", initialize(BATCHES, "{}")));
    assert_eq!(server.reply(reply).status(), 400);
    assert_eq!(server.server.session_count(), 0);
}

#[test]
fn other_revisions_have_no_batches() {
    // Rule: [BATCH-010].
    for revision in [Revision::V2024_11_05, Revision::V2025_06_18, Revision::V2025_11_25] {
        let mut server = server();
        let session = server.open(revision, "{}");
        for body in [format!("[{}]", call(1)), format!("[{}]", cancel(1))] {
            let reply = server.post(&session, &body);
            assert_eq!(server.reply(reply).status(), 400, "{revision}");
            assert_eq!(server.reply(reply).json()["error"]["code"], -32600);
        }
        let mut without = server_of(Revisions::only(revision));
        let reply = without.request("POST", "/mcp", &POST, &format!("[{}]", call(1)));
        assert_eq!(without.reply(reply).status(), 400);
    }
}

#[test]
fn a_batch_whose_requests_are_all_cancelled_gets_no_response() {
    // Rule: [CANC-003].
    let mut server = server();
    let session = server.open(BATCHES, "{}");
    let reply = server.post(&session, &format!("[{},{}]", call(1), call(2)));
    server.events.clear();
    server.post(&session, &format!("[{},{}]", cancel(1), cancel(2)));
    server.cancelled();
    server.cancelled();
    assert_eq!(server.reply(reply).transcript(), "200 text/event-stream\nend");
    assert_eq!(server.server.exchange_count(), 0);
}
