//! Names, kinds and attributes of spans.

use mcp_sansio::Revision;
use mcp_sansio_handlers::{Call, NoArguments};
use mcp_sansio_test::{Pair, Script, Stream, connect};
use opentelemetry::trace::{SpanKind, Status};

use super::exported::{Exported, attributes};
use super::{host, observed, oslo, server};

#[test]
fn each_request_has_a_span_at_its_sender_and_one_at_its_receiver() {
    // Rule: [TRACE-008] [TRACE-010] [TRACE-013] [TRACE-017] [TRACE-030].
    for revision in Revision::ALL {
        let (there, here, client, mut pair) = observed(revision);
        pair.run(client.list_tools(None)).unwrap();
        drop(client);
        pair.run_until_idle();
        let sent = here.span("tools/list", SpanKind::Client);
        let received = there.span("tools/list", SpanKind::Server);
        assert_eq!((sent.status.clone(), received.status.clone()), (Status::Unset, Status::Unset));
        let (sent, received) = (attributes(&sent), attributes(&received));
        assert_eq!(sent, received);
        assert_eq!(sent["mcp.method.name"], "tools/list");
        assert_eq!(sent["mcp.protocol.version"], revision.as_str());
        assert_eq!(sent["jsonrpc.request.id"], "2");
        // The handshake, too: the sender and the receiver see the same messages.
        let names = |exported: &Exported, kind: SpanKind| {
            let spans = exported.spans().into_iter().filter(|span| span.span_kind == kind);
            let mut names: Vec<String> = spans.map(|span| span.name.into_owned()).collect();
            names.sort();
            names
        };
        let first = if revision < Revision::V2026_07_28 { "initialize" } else { "server/discover" };
        let sent = names(&here, SpanKind::Client);
        assert!(sent.contains(&first.to_owned()), "{sent:?}");
        assert_eq!(sent, names(&there, SpanKind::Server));
        let opening = attributes(&here.span(first, SpanKind::Client));
        assert_eq!(opening["mcp.protocol.version"], revision.as_str());
    }
}

#[test]
fn notifications_have_spans_without_an_id() {
    // Rule: [TRACE-008] [TRACE-018].
    let (there, here) = (Exported::new(), Exported::new());
    let server = server().observe_operations(there.telemetry.clone());
    let host = host(Revision::V2025_11_25).observe_operations(here.telemetry.clone());
    let (_client, _pair) = connect(&server, &host);
    let name = "notifications/initialized";
    for span in [here.span(name, SpanKind::Client), there.span(name, SpanKind::Server)] {
        let attributes = attributes(&span);
        assert_eq!(attributes["mcp.method.name"], name);
        assert_eq!(attributes["mcp.protocol.version"], "2025-11-25");
        assert!(!attributes.contains_key("jsonrpc.request.id"));
    }
    let silent = Exported::new();
    let telemetry = silent.telemetry.clone().notifications(false);
    let (_client, _pair) = connect(&server, &host.observe_operations(telemetry));
    let names: Vec<_> = silent.spans().into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["initialize"]);
}

#[test]
fn a_span_names_its_tool_or_prompt_and_not_its_resource() {
    // Rule: [TRACE-009] [TRACE-012] [TRACE-014] [TRACE-015] [TRACE-016] [TRACE-019].
    for revision in Revision::ALL {
        let (there, here, client, mut pair) = observed(revision);
        pair.run(client.call_tool("forecast", &oslo())).unwrap();
        let arguments = [("location".to_owned(), "Oslo".to_owned())];
        pair.run(client.get_prompt("greet", arguments)).unwrap();
        pair.run(client.read_resource("file:///a")).unwrap();
        for (exported, kind) in [(&here, SpanKind::Client), (&there, SpanKind::Server)] {
            let tool = attributes(&exported.span("tools/call forecast", kind.clone()));
            assert_eq!(tool["gen_ai.tool.name"], "forecast");
            assert_eq!(tool["gen_ai.operation.name"], "execute_tool");
            let prompt = attributes(&exported.span("prompts/get greet", kind.clone()));
            assert_eq!(prompt["gen_ai.prompt.name"], "greet");
            assert!(!prompt.contains_key("gen_ai.operation.name"));
            let resource = attributes(&exported.span("resources/read", kind));
            assert_eq!(resource["mcp.resource.uri"], "file:///a");
            assert!(!resource.contains_key("gen_ai.operation.name"));
            for span in exported.spans() {
                for attribute in span.attributes {
                    assert!(!attribute.value.to_string().contains("Oslo"), "{attribute:?}");
                }
            }
        }
    }
}

#[test]
fn uris_and_payloads_are_recorded_on_request() {
    // Rule: [TRACE-011] [TRACE-037] [TRACE-038].
    let exported = Exported::new();
    let telemetry = exported.telemetry.clone().uris_in_span_names(true).payloads(true);
    let server = server().observe_operations(telemetry.clone());
    let host = host(Revision::LATEST).observe_operations(telemetry);
    let (client, mut pair) = connect(&server, &host);
    pair.run(client.call_tool("forecast", &oslo())).unwrap();
    let arguments = [("location".to_owned(), "Oslo".to_owned())];
    pair.run(client.get_prompt("greet", arguments)).unwrap();
    pair.run(client.read_resource("file:///a")).unwrap();
    for kind in [SpanKind::Client, SpanKind::Server] {
        let tool = attributes(&exported.span("tools/call forecast", kind.clone()));
        assert_eq!(tool["gen_ai.tool.call.arguments"], r#"{"location":"Oslo"}"#);
        assert!(tool["gen_ai.tool.call.result"].contains("Sunny in Oslo"), "{tool:?}");
        let prompt = attributes(&exported.span("prompts/get greet", kind.clone()));
        assert_eq!(prompt["gen_ai.prompt.variable.location"], "Oslo");
        exported.span("resources/read file:///a", kind);
    }
}

#[test]
fn a_byte_stream_is_a_pipe() {
    // Rule: [TRACE-032] [TRACE-033] [TRACE-034].
    let exported = Exported::new();
    let server = server().observe_operations(exported.telemetry.clone());
    let host = host(Revision::LATEST).observe_operations(exported.telemetry.clone());
    let (client, mut pair) = connect(&server, &host);
    pair.run(client.call_tool("forecast", &oslo())).unwrap();
    for kind in [SpanKind::Client, SpanKind::Server] {
        let span = attributes(&exported.span("tools/call forecast", kind));
        assert_eq!(span["network.transport"], "pipe");
        for absent in
            ["network.protocol.name", "network.protocol.version", "jsonrpc.protocol.version"]
        {
            assert!(!span.contains_key(absent), "{absent}");
        }
        for absent in ["server.address", "client.address", "mcp.session.id"] {
            assert!(!span.contains_key(absent), "{absent}");
        }
    }
}

#[test]
fn a_question_of_a_legacy_server_is_sent_by_the_server() {
    // Rule: [TRACE-008].
    let (there, here) = (Exported::new(), Exported::new());
    let server = server().observe_operations(there.telemetry.clone());
    let host = host(Revision::V2025_11_25).observe_operations(here.telemetry.clone());
    let (client, mut pair) = connect(&server, &host);
    pair.run(client.call_tool("ask", &NoArguments {})).unwrap();
    let asked = there.span("elicitation/create", SpanKind::Client);
    let answered = here.span("elicitation/create", SpanKind::Server);
    let call = there.span("tools/call ask", SpanKind::Server);
    assert_eq!(asked.parent_span_id, call.span_context.span_id());
    assert_eq!(answered.parent_span_id, asked.span_context.span_id());
    // A modern call consists of requests of the client only.
    let (there, here, client, mut pair) = observed(Revision::LATEST);
    pair.run(client.call_tool("ask", &NoArguments {})).unwrap();
    let rounds = |exported: &Exported| {
        exported.spans().iter().filter(|span| span.name == "tools/call ask").count()
    };
    assert_eq!((rounds(&here), rounds(&there)), (2, 2));
}

#[test]
fn methods_that_only_a_peer_has_chosen_are_neither_in_names_nor_in_metrics() {
    // Rule: [TRACE-010] [TRACE-013].
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        let exported = Exported::new();
        let server = server().observe_operations(exported.telemetry.clone());
        let script = Script::client(revision)
            .request("no/such", "{}")
            .expect(r#"{"error":{"code":-32601}}"#)
            .request("tools/call", r#"{"name":"no such"}"#)
            .expect(r#"{"error":{"code":-32602}}"#);
        let mut pair = Pair::new(Stream::new(server.endpoint(42).unwrap(), script));
        pair.run_until_idle();
        pair.transport.client.as_ref().unwrap().assert_done();
        let span = attributes(&exported.span("_OTHER", SpanKind::Server));
        assert_eq!(span["mcp.method.name"], "no/such");
        let metric = "mcp.server.operation.duration";
        assert_eq!(exported.point(metric, "_OTHER")["rpc.response.status_code"], "-32601");
        let point = exported.point(metric, "tools/call");
        assert!(!point.contains_key("gen_ai.tool.name"), "{point:?}");
        exported.span("tools/call no such", SpanKind::Server);
    }
}

#[test]
fn requests_that_the_machine_answers_or_refuses_have_spans() {
    // Rule: [TRACE-008].
    let exported = Exported::new();
    let server = server().observe_operations(exported.telemetry.clone());
    let script = Script::client(Revision::V2025_11_25)
        .request("ping", "{}")
        .expect(r#"{"result":{}}"#)
        // The server does not declare it.
        .request("logging/setLevel", r#"{"level":"info"}"#)
        .expect(r#"{"error":{"code":-32601}}"#)
        .request("prompts/list", r#"{"cursor":"wrong"}"#)
        .expect(r#"{"error":{"code":-32602}}"#)
        .send(r#"{"jsonrpc":"2.0","id":"x","method":"initialize","params":{}}"#)
        .expect(r#"{"error":{"code":-32602}}"#);
    let mut pair = Pair::new(Stream::new(server.endpoint(42).unwrap(), script));
    pair.run_until_idle();
    pair.transport.client.as_ref().unwrap().assert_done();
    exported.span("ping", SpanKind::Server);
    let refused = attributes(&exported.span("logging/setLevel", SpanKind::Server));
    assert_eq!(refused["rpc.response.status_code"], "-32601");
    let refused = attributes(&exported.span("prompts/list", SpanKind::Server));
    assert_eq!(refused["rpc.response.status_code"], "-32602");
    let again = exported.spans().into_iter().filter(|span| span.name == "initialize").nth(1);
    let again = attributes(&again.unwrap());
    assert_eq!(
        (&*again["jsonrpc.request.id"], &*again["rpc.response.status_code"]),
        ("x", "-32602")
    );
}

#[test]
fn a_request_that_repeats_an_id_does_not_end_the_first_one() {
    let exported = Exported::new();
    let server = mcp_sansio_handlers::Server::new("s", "1")
        .tool("wait", "", async |_: Call<NoArguments>| std::future::pending::<String>().await)
        .observe_operations(exported.telemetry.clone());
    let call = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"wait"}}"#;
    let script = Script::client(Revision::V2025_11_25)
        .send(call)
        .send(call)
        .expect(r#"{"id":"x","error":{"code":-32600}}"#);
    let mut pair = Pair::new(Stream::new(server.endpoint(42).unwrap(), script));
    pair.run_until_idle();
    pair.transport.client.as_ref().unwrap().assert_done();
    let refused = attributes(&exported.span("tools/call wait", SpanKind::Server));
    assert_eq!(refused["rpc.response.status_code"], "-32600");
    drop(pair);
    let ended = exported.spans();
    assert_eq!(ended.iter().filter(|span| span.name == "tools/call wait").count(), 2);
}
