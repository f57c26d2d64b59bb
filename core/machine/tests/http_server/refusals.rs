//! Requests that a layer above refuses: before anything is done, or later.

use std::time::Duration;

use mcp_sansio::http::server::ResponseMode;
use mcp_sansio::http::{HttpRejection, ParsedBody, ServerOptions, Status};
use mcp_sansio::jsonrpc::{ErrorObject, Frame, Message};
use mcp_sansio::{Revision, Revisions};

use crate::answers::ask_for_roots;
use crate::words::*;

fn refusal() -> HttpRejection {
    let mut refusal =
        HttpRejection::new(Status::FORBIDDEN, ErrorObject::invalid_request("not you"));
    refusal.challenge = Some("Bearer scope=\"more\"".into());
    refusal.retry_after = Some(3);
    refusal
}

/// Refuses everything.
fn nothing(_: Option<&ParsedBody<'_>>) -> Result<(), HttpRejection> {
    Err(refusal())
}

/// Refuses bodies with a call of a tool.
fn no_call(body: Option<&ParsedBody<'_>>) -> Result<(), HttpRejection> {
    let is_call = |message: &Message<'_>| matches!(message, Message::Request(request) if request.method == "tools/call");
    let calls = match body.map(ParsedBody::frame) {
        Some(Frame::Single(message)) => is_call(message),
        Some(Frame::Batch(batch)) => batch.clone().flatten().any(|message| is_call(&message)),
        None => false,
    };
    if calls { Err(refusal()) } else { Ok(()) }
}

/// Whether a reply is the refusal, with everything that HTTP has for it.
#[track_caller]
fn expect_refused(site: &crate::site::Site, ticket: usize, id: &str) {
    let reply = site.reply(ticket);
    assert_eq!(reply.status(), 403);
    assert_eq!(reply.field("www-authenticate"), Some("Bearer scope=\"more\""));
    assert_eq!(reply.field("retry-after"), Some("3"));
    assert_eq!(reply.field("content-type"), Some("application/json"));
    assert_eq!(reply.error(), (-32600, id.into()));
}

#[test]
fn what_is_refused_is_not_acted_on() {
    let mut site = site();
    site.permit = nothing;
    for revision in RESUMING {
        let opened = site.request("POST", "/mcp", &POST, &initialize(revision, "{}"));
        expect_refused(&site, opened, "0");
    }
    let asked = site.modern(&modern_call(4));
    expect_refused(&site, asked, "4");
    for method in ["GET", "DELETE"] {
        let asked = site.request(method, "/mcp", &[HOST, ACCEPT], "");
        expect_refused(&site, asked, "none");
    }
    site.expect_no_event();
    site.expect_empty();
}

#[test]
fn a_session_is_not_touched_by_what_is_refused() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    site.permit = nothing;
    for body in ["{", INITIALIZED, &cancel(7), &request(7, "ping", "{}")] {
        let ticket = site.post(&session, body);
        assert_eq!(site.reply(ticket).status(), 403, "{body}");
    }
    let fields = join(&[HOST, ACCEPT], &session.fields());
    for method in ["GET", "DELETE"] {
        let ticket = site.request(method, "/mcp", &fields, "");
        assert_eq!(site.reply(ticket).status(), 403, "{method}");
    }
    site.expect_no_event();
    assert_eq!(site.server.session_count(), 1);
    site.permit = |_| Ok(());
    let pinged = site.post(&session, &request(7, "ping", "{}"));
    assert_eq!(site.reply(pinged).status(), 200);
}

#[test]
fn a_batch_is_refused_as_a_whole() {
    let mut site = site();
    let session = site.open(Revision::V2025_03_26, "{}");
    site.permit = no_call;
    let batch = format!("[{},{}]", request(1, "ping", "{}"), call(2));
    let asked = site.post(&session, &batch);
    expect_refused(&site, asked, "none");
    site.expect_no_event();
    let asked = site.post(&session, &format!("[{}]", request(1, "ping", "{}")));
    assert_eq!(site.reply(asked).status(), 200);
}

#[test]
fn a_message_of_http_sse_is_refused_where_it_is_posted() {
    let mut site = site_with(ServerOptions::new().legacy_sse("/sse", "/messages"));
    site.permit = no_call;
    let stream = site.request("GET", "/sse", &[HOST], "");
    let target = site.reply(stream).events()[0].data.clone();
    let asked = site.request("POST", &target, &POST, &call(1));
    expect_refused(&site, asked, "1");
    site.permit = nothing;
    let opened = site.request("GET", "/sse", &[HOST], "");
    assert_eq!(site.reply(opened).status(), 403);
}

#[test]
fn a_refusal_is_the_status_while_the_response_has_not_begun() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    for asked in [site.post(&session, &call(4)), site.modern(&modern_call(4))] {
        let request = site.asked();
        site.refuse(request.handle, refusal());
        expect_refused(&site, asked, "4");
    }
}

#[test]
fn a_refusal_is_an_error_in_a_stream_that_has_begun() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, "{}");
    for asked in [site.post(&session, &call(4)), site.modern(&modern_call(4))] {
        let request = site.asked();
        site.progress(request.handle, 1.0);
        site.refuse(request.handle, refusal());
        expect_streamed(&site, asked);
    }
    let asked = site.modern(&modern_call(4));
    let request = site.asked();
    site.advance(Duration::from_secs(6));
    site.refuse(request.handle, refusal());
    expect_streamed(&site, asked);
}

#[test]
fn a_refusal_is_an_error_where_answers_are_streams() {
    let mut site = site_with(ServerOptions::new().answers(ResponseMode::Stream));
    let session = site.open(Revision::V2025_11_25, "{}");
    let asked = site.post(&session, &call(4));
    let request = site.asked();
    site.refuse(request.handle, refusal());
    expect_streamed(&site, asked);
}

#[track_caller]
fn expect_streamed(site: &crate::site::Site, ticket: usize) {
    let reply = site.reply(ticket);
    assert_eq!((reply.status(), reply.field("www-authenticate")), (200, None));
    let last = reply.events().pop().expect("an event");
    assert!(last.data.contains("\"code\":-32600"), "{last:?}");
    assert!(last.data.contains("not you"), "{last:?}");
}

#[test]
fn one_refusal_among_the_answers_to_a_batch_is_its_error_alone() {
    let mut site = site_of(Revisions::only(Revision::V2025_03_26));
    let session = site.open(Revision::V2025_03_26, "{}");
    let asked = site.post(&session, &format!("[{},{}]", call(1), call(2)));
    let (first, second) = (site.asked(), site.asked());
    site.refuse(first.handle, refusal());
    site.answer_to(second.handle);
    let reply = site.reply(asked);
    assert_eq!((reply.status(), reply.field("www-authenticate")), (200, None));
    assert!(String::from_utf8_lossy(&reply.body).contains("not you"));
}

#[test]
fn a_request_that_waits_for_the_client_cannot_be_refused() {
    let mut site = site();
    let session = site.open(Revision::V2025_11_25, r#"{"roots":{}}"#);
    site.post(&session, &call(4));
    let request = site.asked();
    let (handle, now) = (request.handle, site.now);
    site.server.require_input(request, &ask_for_roots(), now).expect("an answer is due");
    assert!(site.server.refuse(handle, refusal(), now).is_err());
    site.pump();
}

#[test]
fn what_is_answered_cannot_be_refused() {
    let mut site = site();
    site.modern(&modern_call(4));
    let request = site.asked();
    site.answer_to(request.handle);
    assert!(site.server.refuse(request.handle, refusal(), site.now).is_err());
}
