//! Which outcomes are failures, on each side.

use std::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio_handlers::{Call, NoArguments, Server};
use mcp_sansio_test::{Pair, Script, Stream, connect};
use opentelemetry::trace::{SpanKind, Status};

use super::exported::{Exported, attributes};
use super::{host, observed};

const SENT: &str = "mcp.client.operation.duration";
const RECEIVED: &str = "mcp.server.operation.duration";

#[test]
fn a_tool_error_is_a_failure_of_both_sides() {
    // Rule: [TRACE-021] [TRACE-023] [TRACE-028] [TRACE-046].
    for revision in Revision::ALL {
        let (there, here, client, mut pair) = observed(revision);
        let result = pair.run(client.call_tool("fail", &NoArguments {})).unwrap();
        assert_eq!(result.is_error, Some(true));
        for (exported, kind, metric) in
            [(&here, SpanKind::Client, SENT), (&there, SpanKind::Server, RECEIVED)]
        {
            let span = exported.span("tools/call fail", kind);
            assert_eq!(span.status, Status::error(""), "{revision}");
            let span = attributes(&span);
            assert_eq!(span["error.type"], "tool_error");
            assert!(!span.contains_key("rpc.response.status_code"));
            assert_eq!(exported.point(metric, "tools/call")["error.type"], "tool_error");
        }
    }
}

#[test]
fn an_invalid_request_is_a_failure_of_the_sender_only() {
    // Rule: [TRACE-020] [TRACE-022] [TRACE-025] [TRACE-026] [TRACE-028] [TRACE-029].
    let (there, here, client, mut pair) = observed(Revision::LATEST);
    pair.run(client.call_tool("refuse", &NoArguments {})).unwrap_err();
    let sent = here.span("tools/call refuse", SpanKind::Client);
    assert_eq!(sent.status, Status::error("not now"));
    let sent = attributes(&sent);
    assert_eq!(sent["error.type"], "-32602");
    assert_eq!(sent["rpc.response.status_code"], "-32602");
    let received = there.span("tools/call refuse", SpanKind::Server);
    assert_eq!(received.status, Status::Unset);
    let received = attributes(&received);
    assert!(!received.contains_key("error.type"));
    assert_eq!(received["rpc.response.status_code"], "-32602");
    assert_eq!(here.point(SENT, "tools/call")["error.type"], "-32602");
    assert!(!there.point(RECEIVED, "tools/call").contains_key("error.type"));
}

#[test]
fn the_faults_of_a_sender_are_five_codes() {
    // Rule: [TRACE-026] [TRACE-027].
    for (code, fails) in [
        (-32700, false),
        (-32600, false),
        (-32601, false),
        (-32602, false),
        (-32002, false),
        (-32603, true),
        (-32000, true),
        (-32042, true),
        (7, true),
    ] {
        let exported = Exported::new();
        let server = Server::new("s", "1")
            .tool("fail", "", move |_: Call<NoArguments>| {
                let code = mcp_sansio::ErrorCode(code);
                let error = mcp_sansio::jsonrpc::ErrorObject::new(code, "the message");
                Err::<String, _>(mcp_sansio_handlers::HandlerError::Protocol(error))
            })
            .observe_operations(exported.telemetry.clone());
        let (client, mut pair) = connect(&server, &host(Revision::V2025_11_25));
        pair.run(client.call_tool("fail", &NoArguments {})).unwrap_err();
        let span = exported.span("tools/call fail", SpanKind::Server);
        let status = if fails { Status::error("the message") } else { Status::Unset };
        assert_eq!(span.status, status, "{code}");
        let span = attributes(&span);
        assert_eq!(span["rpc.response.status_code"], code.to_string());
        assert_eq!(span.get("error.type"), fails.then(|| code.to_string()).as_ref());
    }
}

#[test]
fn calls_without_a_response_have_a_class_of_failure() {
    // Rule: [TRACE-024] [TRACE-028] [TRACE-046].
    let revision = Revision::V2025_11_25;
    let start = |script: Script| {
        let here = Exported::new();
        let host = host(revision).observe_operations(here.telemetry.clone());
        let (client, endpoint) = host.connect(42, mcp_sansio::Instant::ZERO);
        let mut pair = Pair::new(Stream::new(script, endpoint));
        pair.run(client.opened()).unwrap();
        (here, client, pair)
    };
    let check = |here: &Exported, class: &str| {
        let span = here.span("tools/call x", SpanKind::Client);
        assert_eq!(span.status, Status::error(""), "{class}");
        assert_eq!(attributes(&span)["error.type"], class);
        assert_eq!(here.point(SENT, "tools/call")["error.type"], class);
    };

    let waiting = || Script::server(revision).expect(r#"{"method":"tools/call"}"#);
    let cancelled = || waiting().expect(r#"{"method":"notifications/cancelled"}"#);
    let (here, client, mut pair) = start(cancelled());
    let mut call =
        pair.start(client.call_tool("x", &NoArguments {}).timeout(Duration::from_secs(1)));
    pair.advance(Duration::from_secs(2));
    assert!(pair.poll(call.as_mut()).unwrap().is_err());
    check(&here, "timeout");

    let (here, client, mut pair) = start(cancelled());
    drop(pair.start(client.call_tool("x", &NoArguments {})));
    pair.run_until_idle();
    check(&here, "cancelled");

    let (here, client, mut pair) = start(waiting().close());
    pair.run(client.call_tool("x", &NoArguments {})).unwrap_err();
    check(&here, "connection_lost");

    let (here, client, mut pair) = start(waiting().send(r#"{"jsonrpc":"2.0","id":2,"result":7}"#));
    pair.run(client.call_tool("x", &NoArguments {})).unwrap_err();
    check(&here, "invalid_response");
}

#[test]
fn a_request_that_its_client_cancels_is_no_failure_of_the_server() {
    // Rule: [TRACE-021].
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        let there = Exported::new();
        let server = Server::new("s", "1")
            .tool("wait", "", async |_: Call<NoArguments>| std::future::pending::<String>().await)
            .observe_operations(there.telemetry.clone());
        let (client, mut pair) = connect(&server, &host(revision));
        let call = pair.start(client.call_tool("wait", &NoArguments {}));
        pair.run_until_idle();
        drop(call);
        pair.run_until_idle();
        let span = there.span("tools/call wait", SpanKind::Server);
        assert_eq!(span.status, Status::Unset);
        assert!(!attributes(&span).contains_key("error.type"));
        // But it is not a success either.
        assert_eq!(attributes(&span)["mcp_sansio.cancelled"], "true");
    }
}
