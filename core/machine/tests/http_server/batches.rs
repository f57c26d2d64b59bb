//! Arrays of messages, at the revision that has them.

use mcp_sansio::{Revision, Revisions};

use crate::reply::State;
use crate::words::*;

const BATCHES: Revision = Revision::V2025_03_26;

#[test]
fn a_batch_of_requests_is_answered_by_an_array() {
    // Rule: [BATCH-001] [BATCH-007].
    let mut site = site();
    let session = site.open(BATCHES, "{}");
    let body = format!("[{},{},{}]", call(1), request(2, "ping", "{}"), cancel(99));
    let reply = site.post(&session, &body);
    assert_eq!(site.reply(reply).status, None, "one request is not answered");
    site.answer();
    let body = site.reply(reply).json();
    let ids: Vec<_> =
        body.as_array().unwrap().iter().map(|answer| answer["id"].to_string()).collect();
    assert_eq!(ids, ["2", "1"]);
}

#[test]
fn a_batch_without_a_request_is_accepted() {
    // Rule: [BATCH-006] [HSRV-008].
    let mut site = site();
    let session = site.open(BATCHES, "{}");
    for body in [
        format!("[{}]", cancel(1)),
        format!("[{0},{0}]", cancel(1)),
        r#"[{"jsonrpc":"2.0","id":5,"result":{}}]"#.into(),
    ] {
        let reply = site.post(&session, &body);
        assert_eq!(site.reply(reply).transcript(), "202\n", "{body}");
    }
}

#[test]
fn a_batch_that_is_answered_on_a_stream_ends_it_with_all_of_its_answers() {
    // Rule: [BATCH-008] [BATCH-009] [SSE-002].
    let mut site = site();
    let session = site.open(BATCHES, "{}");
    let reply = site.post(&session, &format!("[{},{}]", call(1), call(2)));
    let (first, second) = (site.asked(), site.asked());
    site.progress(second.handle, 1.0);
    site.answer_to(second.handle);
    assert_eq!(site.reply(reply).state, State::UnderWay);
    site.progress(first.handle, 1.0);
    site.answer_to(first.handle);
    let reply = site.reply(reply);
    assert_eq!(reply.state, State::Complete);
    let messages = reply.messages();
    assert_eq!(messages.len(), 3);
    let answers = messages[2].as_array().unwrap();
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&2.into(), &1.into()));
}

#[test]
fn invalid_elements_get_their_own_errors() {
    // Rule: [BATCH-003] [BATCH-004].
    let mut site = site();
    let session = site.open(BATCHES, "{}");
    let reply = site.post(&session, &format!("[1,{}]", request(2, "ping", "{}")));
    let body = site.reply(reply).json();
    assert_eq!(body[0]["error"]["code"], -32600);
    assert_eq!(body[1]["id"], 2);
    let reply = site.post(&session, "[]");
    assert_eq!(site.reply(reply).status(), 400);
    assert_eq!(site.reply(reply).json()["error"]["code"], -32600);
    let reply = site.post(&session, &format!("[{}]", initialize(BATCHES, "{}")));
    assert_eq!(site.reply(reply).json()[0]["error"]["code"], -32600);
    assert_eq!(site.server.exchange_count(), 0);
}

#[test]
fn a_batch_outside_of_a_session_opens_none() {
    // Rule: [BATCH-004].
    let mut site = site();
    let reply = site.request("POST", "/mcp", &POST, &format!("[{}]", initialize(BATCHES, "{}")));
    assert_eq!(site.reply(reply).status(), 400);
    assert_eq!(site.server.session_count(), 0);
}

#[test]
fn other_revisions_have_no_batches() {
    // Rule: [BATCH-010].
    for revision in [Revision::V2024_11_05, Revision::V2025_06_18, Revision::V2025_11_25] {
        let mut site = site();
        let session = site.open(revision, "{}");
        for body in [format!("[{}]", call(1)), format!("[{}]", cancel(1))] {
            let reply = site.post(&session, &body);
            assert_eq!(site.reply(reply).status(), 400, "{revision}");
            assert_eq!(site.reply(reply).json()["error"]["code"], -32600);
        }
        let mut without = site_of(Revisions::only(revision));
        let reply = without.request("POST", "/mcp", &POST, &format!("[{}]", call(1)));
        assert_eq!(without.reply(reply).status(), 400);
    }
}

#[test]
fn a_batch_whose_requests_are_all_cancelled_gets_no_answer() {
    // Rule: [CANC-003].
    let mut site = site();
    let session = site.open(BATCHES, "{}");
    let reply = site.post(&session, &format!("[{},{}]", call(1), call(2)));
    site.events.clear();
    site.post(&session, &format!("[{},{}]", cancel(1), cancel(2)));
    site.cancelled();
    site.cancelled();
    assert_eq!(site.reply(reply).transcript(), "200 text/event-stream\nend");
    assert_eq!(site.server.exchange_count(), 0);
}
