//! HTTP+SSE of 2024-11-05.

use mcp_sansio::http::HttpServerOptions;
use mcp_sansio::peer::Event;
use mcp_sansio::{Principal, Revision};

use crate::fixtures::*;
use crate::reply::State;
use crate::test_server::{TestServer, Ticket};

const OLD: Revision = Revision::V2024_11_05;

fn sse_server() -> TestServer {
    server_with(HttpServerOptions::new().legacy_sse("/sse", "/messages"))
}

/// Opens the stream. Returns its ticket and the endpoint for messages.
fn connect(server: &mut TestServer) -> (Ticket, String) {
    let stream = server.request("GET", "/sse", &[HOST, ("Accept", "text/event-stream")], "");
    let endpoint = server.reply(stream).events()[0].clone();
    assert_eq!(endpoint.kind.as_deref(), Some("endpoint"));
    assert_eq!(endpoint.id, None);
    (stream, endpoint.data)
}

fn post(server: &mut TestServer, endpoint: &str, body: &str) -> u16 {
    let reply = server.request("POST", endpoint, &[HOST, JSON], body);
    server.reply(reply).status()
}

fn messages(server: &TestServer, stream: Ticket) -> Vec<serde_json::Value> {
    let events = server.reply(stream).events();
    let messages = events.iter().filter(|event| event.kind.as_deref() == Some("message"));
    messages.map(|event| serde_json::from_str(&event.data).unwrap()).collect()
}

fn open(server: &mut TestServer) -> (Ticket, String) {
    let (stream, endpoint) = connect(server);
    assert_eq!(post(server, &endpoint, &initialize(OLD, "{}")), 202);
    assert_eq!(post(server, &endpoint, INITIALIZED), 202);
    server.event();
    (stream, endpoint)
}

#[test]
fn a_second_initialize_on_a_stream_opens_the_session_anew() {
    let mut server = sse_server();
    let (stream, endpoint) = open(&mut server);
    assert_eq!(post(&mut server, &endpoint, &call(5)), 202);
    let running = server.asked();
    let before = messages(&server, stream).len();
    assert_eq!(post(&mut server, &endpoint, &initialize(Revision::V2025_03_26, "{}")), 202);
    assert_eq!(server.cancelled(), running.handle);
    let messages = messages(&server, stream);
    assert_eq!(messages.len(), before + 1);
    assert_eq!(messages[before]["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(post(&mut server, &endpoint, INITIALIZED), 202);
    assert!(matches!(server.event(), Event::Opened(_)));
}

#[test]
fn cancelled_requests_do_not_count_as_handlers() {
    let options = limits(|limits| limits.handlers_max = 8).legacy_sse("/sse", "/messages");
    let mut server = server_with(options);
    let (_, endpoint) = open(&mut server);
    for id in 0..9 {
        assert_eq!(post(&mut server, &endpoint, &call(id)), 202);
        let request = server.asked().handle;
        assert_eq!(server.server.admit_handler(request), Ok(()), "{id}");
        assert_eq!(post(&mut server, &endpoint, &cancel(id)), 202);
        assert_eq!(server.cancelled(), request);
        server.server.release_handler(request);
    }
}

#[test]
fn the_first_event_has_the_endpoint() {
    // Rule: [LSSE-001] [LSSE-002] [LSSE-006].
    let mut server = sse_server();
    let (stream, endpoint) = connect(&mut server);
    let (path, session) = endpoint.split_once("?sessionId=").expect("an address");
    assert_eq!((path, session.len()), ("/messages", 32));
    assert_eq!(server.reply(stream).field("content-type"), Some("text/event-stream"));
    assert_eq!(server.reply(stream).field("mcp-session-id"), None);
    // A client without `Accept` is served as well.
    let silent = server.request("GET", "/sse", &[HOST], "");
    assert_eq!(server.reply(silent).status(), 200);
    // The newer endpoint is available at the same time.
    server.open(Revision::V2025_11_25, "{}");
    assert_eq!(server.server.session_count(), 3);
}

#[test]
fn responses_are_messages_on_the_stream() {
    // Rule: [LSSE-004].
    let mut server = sse_server();
    let (stream, endpoint) = open(&mut server);
    assert_eq!(messages(&server, stream)[0]["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(post(&mut server, &endpoint, &call(1)), 202);
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    server.tools_changed();
    server.answer_to(asked.handle);
    assert_eq!(post(&mut server, &endpoint, &request(2, "no/such", "{}")), 202);
    let messages = messages(&server, stream);
    assert_eq!(messages[1]["method"], "notifications/progress");
    assert_eq!(messages[2]["method"], "notifications/tools/list_changed");
    assert_eq!(messages[3]["id"], 1);
    assert_eq!(messages[4]["error"]["code"], -32601);
    assert_eq!(messages.len(), 5);
    assert!(server.reply(stream).events().iter().all(|event| event.id.is_none()));
    assert_eq!(server.reply(stream).state, State::UnderWay);
}

#[test]
fn invalid_messages_are_rejected() {
    let mut server = sse_server();
    let (stream, endpoint) = open(&mut server);
    assert_eq!(post(&mut server, &endpoint, "{"), 400);
    assert_eq!(
        post(&mut server, &endpoint, r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#),
        400
    );
    assert_eq!(post(&mut server, &endpoint, &cancel(9)), 202);
    assert_eq!(server.reply(stream).state, State::UnderWay);
}

#[test]
fn a_modern_request_gets_an_error() {
    // Rule: [LSSE-011].
    let mut server = sse_server();
    let (stream, endpoint) = open(&mut server);
    let before = messages(&server, stream).len();
    assert_eq!(post(&mut server, &endpoint, &modern(7, "server/discover", "")), 202);
    let answer = &messages(&server, stream)[before];
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&7.into(), &(-32601).into()));
}

#[test]
fn cancellation_is_a_notification() {
    // Rule: [CANC-001] [CANC-003].
    let mut server = sse_server();
    let (stream, endpoint) = open(&mut server);
    post(&mut server, &endpoint, &call(1));
    let asked = server.asked();
    assert_eq!(post(&mut server, &endpoint, &cancel(1)), 202);
    assert_eq!(server.cancelled(), asked.handle);
    assert_eq!(messages(&server, stream).len(), 1);
    assert_eq!(server.reply(stream).state, State::UnderWay);
}

#[test]
fn the_end_of_the_stream_ends_the_session() {
    let mut server = sse_server();
    let (stream, endpoint) = open(&mut server);
    post(&mut server, &endpoint, &call(1));
    let asked = server.asked();
    server.disconnect(stream);
    assert_eq!(server.cancelled(), asked.handle);
    server.expect_no_event();
    assert_eq!(post(&mut server, &endpoint, &call(2)), 404);
    server.expect_empty();
}

#[test]
fn an_unknown_session_is_refused() {
    let mut server = sse_server();
    server.principal = Some(Principal::new("ann"));
    let (_, endpoint) = open(&mut server);
    let streamable = server.open(Revision::V2025_11_25, "{}");
    for (target, status) in [
        ("/messages", 400),
        ("/messages?session=1", 400),
        ("/messages?sessionId=", 404),
        ("/messages?sessionId=0123456789abcdef0123456789abcdef", 404),
        (&format!("/messages?sessionId={}", streamable.id), 404),
        (&format!("{endpoint}&x=y"), 202),
        (&endpoint.replace("sessionId", "x=y&sessionId"), 202),
    ] {
        assert_eq!(post(&mut server, target, &cancel(1)), status, "{target}");
    }
    // It is not a session of the newer endpoint.
    let id = endpoint.split_once('=').unwrap().1.to_owned();
    let as_streamable = Session { id, revision: Revision::V2025_11_25 };
    let reply = server.post(&as_streamable, &call(1));
    assert_eq!(server.reply(reply).status(), 404);
    // It does not belong to another principal.
    server.principal = Some(Principal::new("bob"));
    assert_eq!(post(&mut server, &endpoint, &cancel(1)), 404);
}

#[test]
fn a_newer_revision_can_be_negotiated() {
    let mut server = sse_server();
    let (stream, endpoint) = connect(&mut server);
    post(&mut server, &endpoint, &initialize(Revision::V2025_11_25, "{}"));
    post(&mut server, &endpoint, INITIALIZED);
    server.event();
    post(&mut server, &endpoint, &call(1));
    let asked = server.asked();
    server.server.release_connection(asked.handle, std::time::Duration::from_secs(1));
    server.answer_to(asked.handle);
    assert_eq!(messages(&server, stream)[1]["id"], 1);
    assert!(server.reply(stream).events().iter().all(|it| it.id.is_none() && it.retry.is_none()));
}

#[test]
fn the_paths_exist_only_if_configured() {
    let mut server = server();
    let reply = server.request("GET", "/sse", &[HOST, ("Accept", "text/event-stream")], "");
    assert_eq!(server.reply(reply).status(), 404);
}

#[test]
fn a_relative_path_for_messages_is_announced_unchanged() {
    // Rule: [LSSE-002].
    for (events, messages, path) in
        [("/sse", "messages", "/messages"), ("/a/sse", "in/m", "/a/in/m"), ("/sse", "m", "/m")]
    {
        let mut server = server_with(HttpServerOptions::new().legacy_sse(events, messages));
        let stream = server.request("GET", events, &[HOST, ("Accept", "text/event-stream")], "");
        let endpoint = server.reply(stream).events()[0].data.clone();
        let (reference, query) = endpoint.split_once('?').unwrap();
        assert_eq!(reference, messages);
        let body = initialize(OLD, "{}");
        assert_eq!(post(&mut server, &format!("{path}?{query}"), &body), 202);
        assert_eq!(post(&mut server, &format!("/x{path}?{query}"), &body), 404);
    }
}
