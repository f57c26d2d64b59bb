//! The standalone stream of a session.

use mcp_sansio::peer::ServerMachine;
use mcp_sansio::{LoggingLevel, Revision};
use serde_json::Value;

use crate::fixtures::*;
use crate::reply::State;
use crate::test_server::{TestServer, Ticket};

fn methods(server: &TestServer, ticket: Ticket) -> Vec<String> {
    let messages = server.reply(ticket).messages();
    messages.iter().map(|message| message["method"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_get_is_a_stream_of_events() {
    // Rule: [HSRV-001] [HSRV-013] [SSE-005].
    let mut server = server();
    for revision in RESUMING {
        let session = server.open(revision, "{}");
        let stream = server.get(&session);
        let primed = if revision == Revision::V2025_11_25 { "id=0-0 \n" } else { "id=0-0 alone\n" };
        let expected = format!("200 text/event-stream\n{primed}...");
        assert_eq!(server.reply(stream).transcript(), expected);
        assert_eq!(server.reply(stream).field("x-accel-buffering"), Some("no"));
    }
}

#[test]
fn unrelated_notifications_go_to_the_listening_stream_only() {
    // Rule: [HSRV-014] [HSRV-015] [HSRV-016] [HSRV-017].
    let mut server = server();
    for revision in RESUMING {
        let session = server.open(revision, "{}");
        let stream = server.get(&session);
        let reply = server.post(&session, &call(1));
        let asked = server.asked();
        server.progress(asked.handle, 1.0);
        server.tools_changed();
        server.server.log(None, LoggingLevel::Error, None, "x", server.now).unwrap();
        server.pump();
        server.post(&session, &request(2, "resources/subscribe", r#"{"uri":"a:1"}"#));
        server.resource_updated("a:1");
        server.resource_updated("a:2");
        server.answer_to(asked.handle);
        assert_eq!(
            methods(&server, stream),
            [
                "notifications/tools/list_changed",
                "notifications/message",
                "notifications/resources/updated"
            ]
        );
        assert_eq!(server.reply(reply).messages().len(), 2);
        assert!(server.reply(stream).messages().iter().all(|it| it.get("id").is_none()));
        assert_eq!(server.reply(stream).state, State::UnderWay);
    }
}

#[test]
fn notifications_wait_until_a_stream_is_opened() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    server.tools_changed();
    server.server.log(None, LoggingLevel::Error, None, "x", server.now).unwrap();
    server.pump();
    let stream = server.get(&session);
    assert_eq!(
        methods(&server, stream),
        ["notifications/tools/list_changed", "notifications/message"]
    );
    assert_eq!(server.reply(stream).events()[0].data, "", "the priming event is first");
    // The next stream gets the following messages only.
    server.disconnect(stream);
    server.tools_changed();
    let next = server.get(&session);
    assert_eq!(methods(&server, next), ["notifications/tools/list_changed"]);
    assert_eq!(server.reply(next).last_id().as_deref(), Some("0-3"));
}

#[test]
fn each_session_has_its_own_stream() {
    // Rule: [HSRV-017].
    let mut server = server();
    let one = server.open(Revision::V2025_06_18, "{}");
    let other = server.open(Revision::V2025_06_18, "{}");
    server.post(&one, &request(1, "resources/subscribe", r#"{"uri":"a:1"}"#));
    let (first, second) = (server.get(&one), server.get(&other));
    server.resource_updated("a:1");
    assert_eq!(server.reply(first).messages().len(), 1);
    assert_eq!(server.reply(second).messages().len(), 0);
    server.tools_changed();
    assert_eq!(server.reply(first).messages().len(), 2);
    assert_eq!(server.reply(second).messages().len(), 1);
}

#[test]
fn a_second_get_takes_over_without_repeating_messages() {
    // Rule: [HSRV-017].
    let mut server = server();
    for revision in RESUMING {
        let session = server.open(revision, "{}");
        let first = server.get(&session);
        server.tools_changed();
        let second = server.get(&session);
        assert_eq!(server.reply(first).state, State::Complete);
        server.tools_changed();
        assert_eq!(server.reply(first).messages().len(), 1);
        assert_eq!(server.reply(second).messages().len(), 1);
        assert!(server.reply(second).events()[0].data.is_empty(), "the priming event is first");
        server.delete(&session);
        server.events.clear();
    }
}

#[test]
fn a_reader_that_reconnects_repeatedly_uses_bounded_memory() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    let fields = session.fields();
    let fields = join(&[HOST, ("Accept", "text/event-stream")], &fields);
    for _ in 0..1000 {
        let unread = server.request_unread("GET", "/mcp", &fields, "");
        server.disconnect(unread);
    }
    let (bytes, _) = server.server.retained();
    assert!(bytes < 100, "{bytes}");
}

#[test]
fn an_uninitialized_client_gets_no_notifications() {
    let mut server = server();
    let session = server.open_unconfirmed(Revision::V2025_11_25, "{}");
    let stream = server.get(&session);
    server.tools_changed();
    assert_eq!(server.reply(stream).messages(), [] as [Value; 0]);
}
