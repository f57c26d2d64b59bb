//! Listen streams of modern clients.

use mcp_sansio::peer::ServerMachine;
use std::time::Duration;

use mcp_sansio::Revision;

use crate::fixtures::*;
use crate::reply::State;

const FILTER: &str = r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}"#;

fn listen(id: u32) -> String {
    modern(id, "subscriptions/listen", FILTER)
}

#[test]
fn a_listen_stream_starts_with_its_acknowledgement_and_tags_every_message() {
    // Rule: [SUBS-003] [SUBS-006] [HSRV-019].
    let mut server = server();
    let one = server.modern(&listen(7));
    let other = server.modern(&modern(8, "subscriptions/listen", r#""notifications":{}"#));
    server.expect_no_event();
    server.tools_changed();
    server.resource_updated("a:1");
    server.resource_updated("a:2");
    let messages = server.reply(one).messages();
    let methods: Vec<_> = messages.iter().map(|it| it["method"].as_str().unwrap()).collect();
    assert_eq!(
        methods,
        [
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
            "notifications/resources/updated"
        ]
    );
    for message in &messages {
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    }
    assert_eq!(server.reply(other).messages().len(), 1);
    assert_eq!(server.reply(one).state, State::UnderWay);
}

#[test]
fn progress_is_sent_with_its_request_and_not_on_a_listen_stream() {
    // Rule: [PROG-011].
    let mut server = server();
    let stream = server.modern(&listen(7));
    let reply = server.modern(&modern(8, "tools/call", r#""name":"t""#));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    server.answer_to(asked.handle);
    assert_eq!(server.reply(stream).messages().len(), 1);
    assert_eq!(server.reply(reply).messages()[0]["method"], "notifications/progress");
}

#[test]
fn an_abandoned_listen_stream_is_forgotten() {
    // Rule: [CANC-015].
    let mut server = server();
    for id in 0..100 {
        let stream = server.modern(&listen(id));
        server.disconnect(stream);
    }
    server.expect_no_event();
    server.expect_empty();
}

#[test]
fn a_closed_server_ends_listen_streams_with_a_result() {
    // Rule: [SUBS-008] [HSRV-028] [CANC-020].
    let mut server = server();
    let stream = server.modern(&listen(7));
    server.server.close(server.now);
    server.pump();
    let reply = server.reply(stream);
    assert_eq!(reply.state, State::Complete);
    let last = reply.messages().pop().unwrap();
    assert_eq!(last["id"], 7);
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    assert!(reply.messages().iter().all(|it| it["method"] != "notifications/cancelled"));
    assert!(server.server.is_drained());
    server.expect_empty();
}

#[test]
fn an_invalid_filter_opens_no_stream() {
    let mut server = server();
    for members in ["", r#""notifications":["toolsListChanged"]"#, r#""notifications":"all""#] {
        let reply = server.modern(&modern(1, "subscriptions/listen", members));
        assert_eq!(server.reply(reply).error(), (-32602, "1".into()));
    }
    server.events.clear();
    server.expect_empty();
}

#[test]
fn a_listen_stream_is_kept_alive_without_a_deadline() {
    // Rule: [SSE-014].
    let mut server = server();
    let stream = server.modern(&listen(7));
    server.advance(Duration::from_secs(24 * 3600));
    let comments = server.reply(stream).events().iter().filter(|event| event.comment).count();
    assert_eq!(comments, 24 * 3600 / 15);
    assert_eq!(server.reply(stream).state, State::UnderWay);
}

#[test]
fn clients_of_both_eras_receive_the_same_change() {
    let mut server = server();
    let session = server.open(Revision::V2025_06_18, "{}");
    let (legacy, modern) = (server.get(&session), server.modern(&listen(1)));
    server.tools_changed();
    assert_eq!(server.reply(legacy).messages().len(), 1);
    assert_eq!(server.reply(modern).messages().len(), 2);
}
