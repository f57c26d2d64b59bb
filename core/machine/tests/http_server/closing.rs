//! Graceful shutdown of a server.

use mcp_sansio::peer::ServerMachine;
use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::http::HttpServerOptions;

use crate::answers::ask_for_roots;
use crate::fixtures::*;
use crate::reply::State;

#[test]
fn new_requests_are_refused_and_pending_ones_are_answered() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, r#"{"roots":{}}"#);
    let stream = server.get(&session);
    let listening = server.modern(&modern(9, "subscriptions/listen", r#""notifications":{}"#));
    let replies = [server.post(&session, &call(1)), server.modern(&modern_call(1))];
    let (legacy, modern) = (server.asked(), server.asked());
    server.server.close(server.now);
    server.pump();
    assert!(server.server.is_closing() && !server.server.is_drained());
    assert_eq!(server.reply(stream).state, State::Complete);
    assert_eq!(server.reply(listening).state, State::Complete);
    let refused = [
        server.post(&session, &call(2)),
        server.modern(&modern_call(2)),
        server.get(&session),
        server.request("POST", "/mcp", &POST, &initialize(Revision::V2025_11_25, "{}")),
    ];
    for reply in refused {
        assert_eq!(server.reply(reply).status(), 503);
        assert_eq!(server.reply(reply).field("retry-after"), Some("1"));
    }
    assert_eq!(server.reply(refused[0]).error(), (-32603, "2".into()));
    // A pending request may still need input.
    server.server.require_input(&legacy, &ask_for_roots(), server.now).unwrap();
    server.pump();
    let question = server.reply(replies[0]).messages()[0]["id"].clone();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{question},"result":{{"roots":[]}}}}"#);
    let accepted = server.post(&session, &answer);
    assert_eq!(server.reply(accepted).status(), 202);
    let last = server.reply(replies[0]).last_id().unwrap();
    server.disconnect(replies[0]);
    let back = server.resume(&session, &last);
    assert_eq!(server.reply(back).status(), 200);
    server.answer();
    server.answer_to(modern.handle);
    assert_eq!(server.reply(back).messages().last().unwrap()["id"], 1);
    assert_eq!(server.reply(replies[1]).status(), 200);
    assert!(server.server.is_drained());
}

#[test]
fn an_sse_stream_stays_open_for_pending_responses() {
    let mut server = server_with(HttpServerOptions::new().legacy_sse("/sse", "/messages"));
    let busy = server.request("GET", "/sse", &[HOST], "");
    let idle = server.request("GET", "/sse", &[HOST], "");
    let endpoint = server.reply(busy).events()[0].data.clone();
    for body in [&initialize(Revision::V2024_11_05, "{}"), INITIALIZED, &call(1)] {
        server.request("POST", &endpoint, &[HOST, JSON], body);
    }
    server.event();
    let asked = server.asked();
    server.server.close(server.now);
    server.pump();
    assert_eq!(server.reply(idle).state, State::Complete);
    assert_eq!(server.reply(busy).state, State::UnderWay);
    let refused = server.request("POST", &endpoint, &[HOST, JSON], &call(2));
    assert_eq!(server.reply(refused).status(), 503);
    server.answer_to(asked.handle);
    let last = server.reply(busy).events().pop().unwrap();
    assert!(last.data.contains(r#""id":1"#));
    assert_eq!(server.reply(busy).state, State::Complete);
    assert!(server.server.is_drained());
    server.expect_empty();
}

#[test]
fn a_stream_ends_after_its_queued_messages() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let fields = join(&[HOST, ("Accept", "text/event-stream")], &session.fields());
    let slow = server.request_unread("GET", "/mcp", &fields, "");
    server.tools_changed();
    server.server.close(server.now);
    server.read(slow, usize::MAX);
    assert_eq!(server.reply(slow).messages().len(), 1);
    assert_eq!(server.reply(slow).state, State::Complete);
    server.advance(Duration::from_secs(1800));
    server.expect_empty();
}

#[test]
fn a_stream_without_requests_that_is_resumed_ends_after_the_rest() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let stream = server.get(&session);
    let last = server.reply(stream).last_id().unwrap();
    server.tools_changed();
    server.server.close(server.now);
    server.pump();
    let back = server.resume(&session, &last);
    assert_eq!(server.reply(back).messages().len(), 1);
    assert_eq!(server.reply(back).state, State::Complete);
    assert!(server.server.is_drained());
}

#[test]
fn a_client_can_still_end_its_session() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    server.server.close(server.now);
    let reply = server.delete(&session);
    assert_eq!(server.reply(reply).status(), 204);
    server.expect_empty();
}
