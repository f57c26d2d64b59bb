//! Operations over HTTP.

use std::sync::{Arc, Mutex};

use mcp_sansio::http::{HttpServerOptions, RequestHead};
use mcp_sansio::{Caller, Instant, Revision};
use mcp_sansio_handlers::{Call, Server};
use opentelemetry::Context;
use opentelemetry::baggage::BaggageExt as _;
use opentelemetry::trace::{
    SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
};

use super::exported::{Exported, attributes};
use super::{Place, observed_over_http, oslo, server};

/// A modern call of a tool, with members for its `_meta`.
fn call(meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{{"name":"forecast","arguments":{{"location":"Oslo"}},"_meta":{{{meta}"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"c","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

fn head() -> RequestHead<'static> {
    head_of("2026-07-28")
}

fn head_of(revision: &'static str) -> RequestHead<'static> {
    let mut head = RequestHead::new("POST", "/mcp");
    for (name, value) in [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", revision),
        ("mcp-method", "tools/call"),
        ("mcp-name", "forecast"),
    ] {
        head.field(name, value.as_bytes());
    }
    head
}

fn post(exported: &Exported, head: &RequestHead<'_>, body: &str) {
    post_to(server(), exported, head, body);
}

fn post_to(server: Server, exported: &Exported, head: &RequestHead<'_>, body: &str) {
    let server = server.observe_operations(exported.telemetry.clone());
    let mut server = server.http(HttpServerOptions::new(), [7; 32], 42).unwrap();
    let (_, call) = server.handle_request(head, body.as_bytes(), &Caller::ANONYMOUS, Instant::ZERO);
    if let Some(call) = call {
        let mcp_sansio_handlers::endpoint::HandlerPoll::Ready(output) = call.run() else {
            panic!()
        };
        server.finish(output, Instant::ZERO);
    }
}

#[test]
fn a_request_that_is_refused_by_its_head_has_a_span() {
    let exported = Exported::new();
    let server = server().observe_operations(exported.telemetry.clone());
    let server = server.http(HttpServerOptions::new(), [7; 32], 42).unwrap();
    let with = |name: &str, value: &'static str| {
        let mut head = RequestHead::new("POST", "/mcp");
        let fields = [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        for (field, known) in fields {
            head.field(field, if field == name { value } else { known }.as_bytes());
        }
        head
    };
    let mut modern = with("accept", "text/html");
    modern.field("mcp-protocol-version", b"2026-07-28");
    modern.field("mcp-method", b"tools/call");
    modern.field("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_eq!(server.admit(&modern).unwrap_err().head.status.0, 406);
    let span = exported.span("tools/call", SpanKind::Server);
    assert_eq!(span.span_context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
    let named = attributes(&span);
    assert_eq!(named["mcp.protocol.version"], "2026-07-28");
    assert_eq!(named["network.transport"], "tcp");
    assert_eq!(span.status, Status::Unset, "the sender is at fault");

    // Before 2026-07-28 the head does not name the method.
    assert_eq!(server.admit(&with("host", "evil.example")).unwrap_err().head.status.0, 403);
    let named = attributes(&exported.span("_OTHER", SpanKind::Server));
    assert_eq!(named["mcp.method.name"], "_OTHER");
    // No message was refused here, and no request at all there.
    let before = exported.spans().len();
    let mut other = RequestHead::new("POST", "/other");
    other.field("host", b"localhost");
    assert!(
        server.admit(&other).is_err() && server.admit(&RequestHead::new("PUT", "/mcp")).is_err()
    );
    server.admit(&with("", "")).unwrap();
    assert_eq!(exported.spans().len(), before);
}

#[test]
fn the_network_and_the_session_are_named() {
    // Rule: [TRACE-031] [TRACE-032] [TRACE-033] [TRACE-035].
    for revision in [Revision::V2025_03_26, Revision::V2025_11_25, Revision::LATEST] {
        let (there, here, client, mut pair) = observed_over_http(revision);
        pair.run(client.call_tool("forecast", &oslo())).unwrap();
        let sent = attributes(&here.span("tools/call forecast", SpanKind::Client));
        let received = attributes(&there.span("tools/call forecast", SpanKind::Server));
        for span in [&sent, &received] {
            assert_eq!(span["network.transport"], "tcp");
            assert_eq!(span["network.protocol.name"], "http");
        }
        assert_eq!(sent["server.address"], "localhost");
        assert_eq!(sent["server.port"], "8080");
        assert_eq!(sent.get("mcp.session.id"), received.get("mcp.session.id"));
        let has_session = revision < Revision::V2026_07_28;
        assert_eq!(sent.contains_key("mcp.session.id"), has_session, "{revision}");
        if has_session {
            let opening = attributes(&here.span("initialize", SpanKind::Client));
            assert_eq!(opening["mcp.session.id"], sent["mcp.session.id"]);
        }
        let point = here.point("mcp.client.operation.duration", "tools/call");
        assert_eq!((&*point["server.address"], &*point["network.transport"]), ("localhost", "tcp"));
    }
}

#[test]
fn the_client_and_the_version_of_http_are_named_if_the_adapter_knows_them() {
    // Rule: [TRACE-033] [TRACE-036].
    let exported = Exported::new();
    let mut head = head();
    head.http_version("2");
    head.remote_address(std::net::IpAddr::from([192, 0, 2, 1]));
    post(&exported, &head, &call(""));
    let span = attributes(&exported.span("tools/call forecast", SpanKind::Server));
    assert_eq!(span["client.address"], "192.0.2.1");
    assert_eq!(span["network.protocol.version"], "2");
    assert_eq!(span["network.transport"], "tcp");
    let point = exported.point("mcp.server.operation.duration", "tools/call");
    assert!(!point.contains_key("client.address"), "{point:?}");
}

#[test]
fn the_context_in_the_message_is_the_parent_and_the_one_of_the_request_is_linked() {
    // Rule: [TRACE-006] [TRACE-007].
    const META: &str =
        r#""traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","#;
    const HEADER: &[u8] = b"00-1af7651916cd43dd8448eb211c80319c-10f067aa0ba902b7-01";
    // From the header.
    let exported = Exported::new();
    let mut with_header = head();
    with_header.field("traceparent", HEADER);
    post(&exported, &with_header, &call(META));
    let span = exported.span("tools/call forecast", SpanKind::Server);
    assert_eq!(span.parent_span_id.to_string(), "00f067aa0ba902b7");
    assert_eq!(span.links.len(), 1);
    assert_eq!(span.links[0].span_context.span_id().to_string(), "10f067aa0ba902b7");
    // From a layer around the server, which comes before the header.
    let exported = Exported::new();
    let tracer = exported.tracers.tracer("http");
    let outer = Context::new().with_span(tracer.start("POST /mcp"));
    {
        let _entered = outer.clone().attach();
        post(&exported, &with_header, &call(META));
    }
    let span = exported.span("tools/call forecast", SpanKind::Server);
    assert_eq!(span.parent_span_id.to_string(), "00f067aa0ba902b7");
    assert_eq!(span.links[0].span_context, *outer.span().span_context());
    // Without a context in the message.
    let exported = Exported::new();
    post(&exported, &with_header, &call(""));
    let span = exported.span("tools/call forecast", SpanKind::Server);
    assert_eq!(span.parent_span_id.to_string(), "10f067aa0ba902b7");
    assert_eq!(span.links.len(), 1);
    // Without any.
    let exported = Exported::new();
    post(&exported, &head(), &call(""));
    let span = exported.span("tools/call forecast", SpanKind::Server);
    assert_eq!(span.parent_span_id, opentelemetry::trace::SpanId::INVALID);
    assert!(span.links.is_empty());
}

#[test]
fn requests_that_http_refuses_have_spans() {
    // Rule: [TRACE-008] [TRACE-020].
    let exported = Exported::new();
    let mut other = RequestHead::new("POST", "/mcp");
    for (name, value) in [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ] {
        other.field(name, value.as_bytes());
    }
    post(&exported, &other, &call(""));
    let span = exported.span("tools/call forecast", SpanKind::Server);
    assert!(matches!(span.status, Status::Error { .. }));
    assert_eq!(attributes(&span)["rpc.response.status_code"], "-32020");
    // A session that does not exist.
    let exported = Exported::new();
    let mut legacy = RequestHead::new("POST", "/mcp");
    for (name, value) in [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", "0123456789abcdef0123456789abcdef"),
    ] {
        legacy.field(name, value.as_bytes());
    }
    post(&exported, &legacy, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let span = exported.span("tools/list", SpanKind::Server);
    assert!(!attributes(&span).contains_key("error.type"));
}

#[test]
fn a_modern_notification_has_a_span() {
    // Rule: [TRACE-008].
    let exported = Exported::new();
    let mut head = RequestHead::new("POST", "/mcp");
    for (name, value) in [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
    ] {
        head.field(name, value.as_bytes());
    }
    let body = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    post(&exported, &head, body);
    let span = exported.span("notifications/roots/list_changed", SpanKind::Server);
    assert_eq!(attributes(&span)["mcp.protocol.version"], "2026-07-28");
}

#[test]
fn a_metric_names_no_item_of_a_request_that_reached_no_handler() {
    // Rule: [TRACE-014] [TRACE-015].
    const POINT: &str = "mcp.server.operation.duration";
    let chosen = || call("").replace("forecast", "chosen");
    let without_tools = || Server::new("s", "1");
    let legacy = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"chosen"}}"#;
    for (server, head, body, code) in [
        (server(), head_of("2025-11-25"), legacy.to_owned(), "-32600"),
        (without_tools(), head(), call(""), "-32601"),
        (server(), head(), chosen(), "-32020"),
        (server(), head_of("2099-01-01"), chosen().replace("2026-07-28", "2099-01-01"), "-32022"),
    ] {
        let exported = Exported::new();
        post_to(server, &exported, &head, &body);
        let point = exported.point(POINT, "tools/call");
        assert_eq!(point["rpc.response.status_code"], code);
        assert!(!point.contains_key("gen_ai.tool.name"), "{point:?}");
    }
    // A tool that exists is named, whatever its handler answers.
    let exported = Exported::new();
    post(&exported, &head(), &call(""));
    assert_eq!(exported.point(POINT, "tools/call")["gen_ai.tool.name"], "forecast");
}

#[test]
fn the_context_of_a_peer_is_linked_on_request() {
    const META: &str = r#""traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","baggage":"user=eve","#;
    const HEADER: &[u8] = b"00-1af7651916cd43dd8448eb211c80319c-10f067aa0ba902b7-01";
    for has_layer in [false, true] {
        let mut exported = Exported::new();
        exported.telemetry = exported.telemetry.clone().link_peers(true);
        let tracer = exported.tracers.tracer("http");
        let outer = Context::new().with_span(tracer.start("POST /mcp"));
        let seen = Arc::new(Mutex::new(None));
        let baggage = Arc::clone(&seen);
        let server = Server::new("s", "1").tool("forecast", "", move |_: Call<Place>| {
            *baggage.lock().unwrap() = Some(Context::current().baggage().len());
            "Sunny"
        });
        let mut head = head();
        head.field("traceparent", HEADER);
        {
            let _entered = has_layer.then(|| outer.clone().attach());
            post_to(server, &exported, &head, &call(META));
        }
        let span = exported.span("tools/call forecast", SpanKind::Server);
        let links = span.links.iter().map(|link| link.span_context.span_id().to_string());
        let links: Vec<_> = links.collect();
        if has_layer {
            assert_eq!(span.parent_span_id, outer.span().span_context().span_id());
            assert_eq!(links, ["00f067aa0ba902b7"]);
        } else {
            assert_eq!(span.parent_span_id, opentelemetry::trace::SpanId::INVALID);
            assert_eq!(links, ["00f067aa0ba902b7", "10f067aa0ba902b7"]);
        }
        let trace = span.span_context.trace_id().to_string();
        assert_ne!(&trace[1..], "af7651916cd43dd8448eb211c80319c");
        assert_eq!(*seen.lock().unwrap(), Some(0), "the peer's baggage was adopted");
    }
}
