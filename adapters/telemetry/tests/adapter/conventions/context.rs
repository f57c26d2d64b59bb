//! Trace context between the sides.

use std::sync::{Arc, Mutex};

use mcp_sansio::Revision;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Event;
use mcp_sansio_handlers::{Call, NoArguments, Server};
use mcp_sansio_telemetry::tool_span;
use mcp_sansio_test::{Pair, Script, Stream, connect};
use opentelemetry::baggage::BaggageExt as _;
use opentelemetry::trace::{SpanKind, TraceContextExt as _, Tracer as _, TracerProvider as _};
use opentelemetry::{Context, KeyValue};

use super::exported::{Exported, attributes};
use super::{host, observed, oslo, server};

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

/// The `_meta` of all requests and notifications that a server has received.
type Received = Arc<Mutex<Vec<String>>>;

fn recorded(server: Server) -> (Server, Received) {
    let received = Received::default();
    let shared = Arc::clone(&received);
    let server = server.observe(move |event| {
        let params = match event {
            Event::Request(request) => &request.params,
            Event::Notification(notification) => &notification.params,
            _ => return,
        };
        let meta = params.get("_meta").map(|meta| meta.as_str().to_owned());
        shared.lock().unwrap().push(meta.unwrap_or_default());
    });
    (server, received)
}

#[test]
fn the_context_of_the_caller_reaches_the_handler() {
    // Rule: [TRACE-001] [TRACE-002] [TRACE-004] [TRACE-005] [TRACE-006].
    for revision in Revision::ALL {
        let (there, here) = (Exported::new(), Exported::new());
        let (server, received) = recorded(server());
        let server = server.observe_operations(there.telemetry.clone());
        let host = host(revision).observe_operations(here.telemetry.clone());
        let (client, mut pair) = connect(&server, &host);
        let tracer = here.tracers.tracer("application");
        let context = Context::current()
            .with_span(tracer.start("agent"))
            .with_baggage([KeyValue::new("user", "ann")]);
        let call = {
            let _entered = context.clone().attach();
            client.call_tool("forecast", &oslo()).into_future()
        };
        pair.run(call).unwrap();
        let sent = here.span("tools/call forecast", SpanKind::Client);
        let handled = there.span("tools/call forecast", SpanKind::Server);
        let agent = context.span().span_context().clone();
        assert_eq!(sent.parent_span_id, agent.span_id(), "{revision}");
        assert_eq!(handled.parent_span_id, sent.span_context.span_id(), "{revision}");
        assert_eq!(handled.span_context.trace_id(), agent.trace_id(), "{revision}");
        assert!(handled.parent_span_is_remote);
        let received = received.lock().unwrap();
        let meta = RawJson::parse(received.last().unwrap()).unwrap();
        let member = |name: &str| meta.get(name).unwrap().to_text().unwrap().into_owned();
        let traceparent =
            format!("00-{}-{}-01", sent.span_context.trace_id(), sent.span_context.span_id());
        assert_eq!(member("traceparent"), traceparent);
        assert_eq!(member("baggage"), "user=ann");
        let unprefixed = meta.members().filter(|member| member.name().contains('/')).count();
        assert_eq!(unprefixed, if revision == Revision::LATEST { 3 } else { 0 }, "{meta:?}");
    }
}

#[test]
fn notifications_carry_context_too() {
    // Rule: [TRACE-004].
    let (there, here, _client, _pair) = observed(Revision::V2025_11_25);
    let name = "notifications/initialized";
    let (sent, received) = (here.span(name, SpanKind::Client), there.span(name, SpanKind::Server));
    assert_eq!(received.parent_span_id, sent.span_context.span_id());
}

#[test]
fn a_notification_of_a_handler_belongs_to_its_request() {
    // Rule: [TRACE-004].
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        let (there, here) = (Exported::new(), Exported::new());
        let server = Server::new("s", "1")
            .tool("slow", "", |call: Call<NoArguments>| {
                call.progress(1.0, None, "half");
                "done"
            })
            .observe_operations(there.telemetry.clone());
        let host = host(revision).observe_operations(here.telemetry.clone());
        let (client, mut pair) = connect(&server, &host);
        let progress = Arc::new(Mutex::new(Vec::new()));
        let shown = Arc::clone(&progress);
        let call = client.call_tool("slow", &NoArguments {}).on_progress(move |progress| {
            shown.lock().unwrap().push(progress.message.clone().unwrap_or_default().into_owned());
        });
        pair.run(call).unwrap();
        assert_eq!(*progress.lock().unwrap(), ["half"]);
        let call = there.span("tools/call slow", SpanKind::Server);
        let name = "notifications/progress";
        let (sent, received) =
            (there.span(name, SpanKind::Client), here.span(name, SpanKind::Server));
        assert_eq!(sent.parent_span_id, call.span_context.span_id());
        assert_eq!(received.parent_span_id, sent.span_context.span_id());
    }
}

#[test]
fn a_context_that_the_caller_writes_itself_is_the_parent() {
    // Rule: [TRACE-006].
    let (there, here, client, mut pair) = observed(Revision::LATEST);
    let meta = format!(r#"{{"traceparent":"{TRACEPARENT}","vendor/key":1}}"#);
    let meta = RawJson::parse(&meta).unwrap().into_owned();
    pair.run(client.call_tool("forecast", &oslo()).meta(meta)).unwrap();
    let sent = here.span("tools/call forecast", SpanKind::Client);
    assert_eq!(sent.parent_span_id.to_string(), "00f067aa0ba902b7");
    let handled = there.span("tools/call forecast", SpanKind::Server);
    assert_eq!(handled.parent_span_id, sent.span_context.span_id());
}

#[test]
fn without_telemetry_the_keys_pass_through() {
    // Rule: [TRACE-003].
    for revision in Revision::ALL {
        let (server, received) = recorded(server());
        let (client, mut pair) = connect(&server, &host(revision));
        let meta =
            format!(r#"{{"traceparent":"{TRACEPARENT}","tracestate":"a=b","baggage":"c=d"}}"#);
        let meta = RawJson::parse(&meta).unwrap().into_owned();
        pair.run(client.call_tool("forecast", &oslo()).meta(meta)).unwrap();
        let received = received.lock().unwrap();
        let meta = RawJson::parse(received.last().unwrap()).unwrap();
        for (name, value) in
            [("traceparent", TRACEPARENT), ("tracestate", "a=b"), ("baggage", "c=d")]
        {
            assert_eq!(meta.get(name).unwrap().to_text().unwrap(), value, "{revision}");
        }
    }
}

#[test]
fn a_context_that_is_not_valid_is_ignored() {
    // Rule: [TRACE-001].
    for traceparent in [
        r#""00-00000000000000000000000000000000-00f067aa0ba902b7-01""#,
        r#""00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7""#,
        r#""garbage""#,
        "7",
        "{}",
    ] {
        let exported = Exported::new();
        let server = server().observe_operations(exported.telemetry.clone());
        let params = format!(
            r#"{{"name":"forecast","arguments":{{"location":"Oslo"}},"_meta":{{"traceparent":{traceparent}}}}}"#
        );
        let script = Script::client(Revision::V2025_11_25)
            .request("tools/call", &params)
            .expect(r#"{"result":{}}"#);
        let mut pair = Pair::new(Stream::new(server.endpoint(42).unwrap(), script));
        pair.run_until_idle();
        pair.transport.client.as_ref().unwrap().assert_done();
        let span = exported.span("tools/call forecast", SpanKind::Server);
        assert_eq!(span.parent_span_id, opentelemetry::trace::SpanId::INVALID, "{traceparent}");
    }
}

#[test]
fn an_outer_span_of_a_tool_call_gets_the_attributes() {
    // Rule: [TRACE-039] [TRACE-040].
    for joins in [true, false] {
        let (there, here) = (Exported::new(), Exported::new());
        let server = server().observe_operations(there.telemetry.clone());
        let telemetry = here.telemetry.clone().outer_tool_spans(joins);
        let host = host(Revision::LATEST).observe_operations(telemetry);
        let (client, mut pair) = connect(&server, &host);
        let tracer = here.tracers.tracer("genai");
        let context = tool_span(&Context::new().with_span(tracer.start("execute_tool forecast")));
        let call = {
            let _entered = context.clone().attach();
            client.call_tool("forecast", &oslo()).into_future()
        };
        pair.run(call).unwrap();
        context.span().end();
        let outer = here.span("execute_tool forecast", SpanKind::Internal);
        let handled = there.span("tools/call forecast", SpanKind::Server);
        let own = here.spans().into_iter().find(|span| span.name == "tools/call forecast");
        if joins {
            assert_eq!(attributes(&outer)["mcp.method.name"], "tools/call");
            assert_eq!(handled.parent_span_id, outer.span_context.span_id());
            assert!(own.is_none());
            here.point("mcp.client.operation.duration", "tools/call");
        } else {
            assert!(outer.attributes.is_empty());
            assert_eq!(own.unwrap().parent_span_id, outer.span_context.span_id());
        }
    }
}
