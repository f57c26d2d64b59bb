//! Requests that a layer above the server refuses, before they have any effect or later.

use mcp_sansio::peer::ServerMachine;
use std::time::Duration;

use mcp_sansio::http::{HttpServerOptions, ParsedBody, ResponseMode};
use mcp_sansio::jsonrpc::{ErrorObject, Frame, Message};
use mcp_sansio::peer::{HttpRejection, Status};
use mcp_sansio::{Revision, Revisions};

use crate::answers::ask_for_roots;
use crate::fixtures::*;

fn refusal() -> HttpRejection {
    let mut refusal =
        HttpRejection::new(Status::FORBIDDEN, ErrorObject::invalid_request("not you"));
    refusal.challenge = Some("Bearer scope=\"more\"".into());
    refusal.retry_after = Some(3);
    refusal
}

/// Refuses every request.
fn nothing(_: Option<&ParsedBody<'_>>) -> Result<(), HttpRejection> {
    Err(refusal())
}

/// Refuses bodies that call a tool.
fn no_call(body: Option<&ParsedBody<'_>>) -> Result<(), HttpRejection> {
    let is_call = |message: &Message<'_>| matches!(message, Message::Request(request) if request.method == "tools/call");
    let calls = match body.map(ParsedBody::frame) {
        Some(Frame::Single(message)) => is_call(message),
        Some(Frame::Batch(batch)) => batch.clone().flatten().any(|message| is_call(&message)),
        None => false,
    };
    if calls { Err(refusal()) } else { Ok(()) }
}

/// Asserts that a reply is the refusal, with all of its HTTP fields.
#[track_caller]
fn expect_refused(server: &crate::test_server::TestServer, ticket: usize, id: &str) {
    let reply = server.reply(ticket);
    assert_eq!(reply.status(), 403);
    assert_eq!(reply.field("www-authenticate"), Some("Bearer scope=\"more\""));
    assert_eq!(reply.field("retry-after"), Some("3"));
    assert_eq!(reply.field("content-type"), Some("application/json"));
    assert_eq!(reply.error(), (-32600, id.into()));
}

#[test]
fn rejected_requests_have_no_effect() {
    let mut server = server();
    server.permit = nothing;
    for revision in RESUMING {
        let opened = server.request("POST", "/mcp", &POST, &initialize(revision, "{}"));
        expect_refused(&server, opened, "0");
    }
    let asked = server.modern(&modern_call(4));
    expect_refused(&server, asked, "4");
    for method in ["GET", "DELETE"] {
        let asked = server.request(method, "/mcp", &[HOST, ACCEPT], "");
        expect_refused(&server, asked, "none");
    }
    server.expect_no_event();
    server.expect_empty();
}

#[test]
fn a_rejected_request_does_not_renew_the_session() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    server.permit = nothing;
    for body in ["{", INITIALIZED, &cancel(7), &request(7, "ping", "{}")] {
        let ticket = server.post(&session, body);
        assert_eq!(server.reply(ticket).status(), 403, "{body}");
    }
    let fields = join(&[HOST, ACCEPT], &session.fields());
    for method in ["GET", "DELETE"] {
        let ticket = server.request(method, "/mcp", &fields, "");
        assert_eq!(server.reply(ticket).status(), 403, "{method}");
    }
    server.expect_no_event();
    assert_eq!(server.server.session_count(), 1);
    server.permit = |_| Ok(());
    let pinged = server.post(&session, &request(7, "ping", "{}"));
    assert_eq!(server.reply(pinged).status(), 200);
}

#[test]
fn a_batch_is_refused_whole() {
    let mut server = server();
    let session = server.open(Revision::V2025_03_26, "{}");
    server.permit = no_call;
    let batch = format!("[{},{}]", request(1, "ping", "{}"), call(2));
    let asked = server.post(&session, &batch);
    expect_refused(&server, asked, "none");
    server.expect_no_event();
    let asked = server.post(&session, &format!("[{}]", request(1, "ping", "{}")));
    assert_eq!(server.reply(asked).status(), 200);
}

#[test]
fn a_message_of_http_sse_is_refused_by_its_post() {
    let mut server = server_with(HttpServerOptions::new().legacy_sse("/sse", "/messages"));
    server.permit = no_call;
    let stream = server.request("GET", "/sse", &[HOST], "");
    let target = server.reply(stream).events()[0].data.clone();
    let asked = server.request("POST", &target, &POST, &call(1));
    expect_refused(&server, asked, "1");
    server.permit = nothing;
    let opened = server.request("GET", "/sse", &[HOST], "");
    assert_eq!(server.reply(opened).status(), 403);
}

#[test]
fn a_refusal_before_the_response_is_an_http_status() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    for asked in [server.post(&session, &call(4)), server.modern(&modern_call(4))] {
        let request = server.asked();
        server.refuse(request.handle, refusal());
        expect_refused(&server, asked, "4");
    }
}

#[test]
fn a_refusal_on_an_open_stream_is_an_error_message() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, "{}");
    for asked in [server.post(&session, &call(4)), server.modern(&modern_call(4))] {
        let request = server.asked();
        server.progress(request.handle, 1.0);
        server.refuse(request.handle, refusal());
        expect_streamed(&server, asked);
    }
    let asked = server.modern(&modern_call(4));
    let request = server.asked();
    server.advance(Duration::from_secs(6));
    server.refuse(request.handle, refusal());
    expect_streamed(&server, asked);
}

#[test]
fn a_refusal_is_an_error_message_if_responses_are_streams() {
    let mut server = server_with(HttpServerOptions::new().answers(ResponseMode::Stream));
    let session = server.open(Revision::V2025_11_25, "{}");
    let asked = server.post(&session, &call(4));
    let request = server.asked();
    server.refuse(request.handle, refusal());
    expect_streamed(&server, asked);
}

#[track_caller]
fn expect_streamed(server: &crate::test_server::TestServer, ticket: usize) {
    let reply = server.reply(ticket);
    assert_eq!((reply.status(), reply.field("www-authenticate")), (200, None));
    let last = reply.events().pop().expect("an event");
    assert!(last.data.contains("\"code\":-32600"), "{last:?}");
    assert!(last.data.contains("not you"), "{last:?}");
}

#[test]
fn a_refusal_in_a_batch_is_the_error_of_its_request_only() {
    let mut server = server_of(Revisions::only(Revision::V2025_03_26));
    let session = server.open(Revision::V2025_03_26, "{}");
    let asked = server.post(&session, &format!("[{},{}]", call(1), call(2)));
    let (first, second) = (server.asked(), server.asked());
    server.refuse(first.handle, refusal());
    server.answer_to(second.handle);
    let reply = server.reply(asked);
    assert_eq!((reply.status(), reply.field("www-authenticate")), (200, None));
    assert!(String::from_utf8_lossy(&reply.body).contains("not you"));
}

#[test]
fn a_request_that_waits_for_input_cannot_be_refused() {
    let mut server = server();
    let session = server.open(Revision::V2025_11_25, r#"{"roots":{}}"#);
    server.post(&session, &call(4));
    let request = server.asked();
    let (handle, now) = (request.handle, server.now);
    server.server.require_input(&request, &ask_for_roots(), now).expect("the request is pending");
    assert!(server.server.refuse(handle, refusal(), now).is_err());
    server.pump();
}

#[test]
fn an_answered_request_cannot_be_rejected() {
    let mut server = server();
    server.modern(&modern_call(4));
    let request = server.asked();
    server.answer_to(request.handle);
    assert!(server.server.refuse(request.handle, refusal(), server.now).is_err());
}
