//! The histograms.

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::{ErrorCode, Revision};
use mcp_sansio_handlers::middleware::{Next, ServerRequest};
use mcp_sansio_handlers::{Call, HandlerError, NoArguments, Server};
use mcp_sansio_test::connect;
use opentelemetry::trace::SpanKind;

use super::exported::{Exported, attributes};
use super::{host, observed, observed_over_http, oslo, server};

const BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

#[test]
fn the_duration_of_operations_is_measured_on_both_sides() {
    // Rule: [TRACE-013] [TRACE-014] [TRACE-041] [TRACE-042] [TRACE-044] [TRACE-045].
    for revision in Revision::ALL {
        let (there, here, client, mut pair) = observed(revision);
        pair.run(client.call_tool("forecast", &oslo())).unwrap();
        pair.run(client.call_tool("forecast", &oslo())).unwrap();
        pair.run(client.read_resource("file:///a")).unwrap();
        for (exported, name) in
            [(&here, "mcp.client.operation.duration"), (&there, "mcp.server.operation.duration")]
        {
            let points = exported.points(name);
            let calls = points.iter().find(|it| it.0["mcp.method.name"] == "tools/call").unwrap();
            assert_eq!(calls.1.count, 2);
            assert_eq!(calls.1.bounds, BOUNDS);
            assert_eq!(calls.0["gen_ai.tool.name"], "forecast");
            assert_eq!(calls.0["gen_ai.operation.name"], "execute_tool");
            assert_eq!(calls.0["mcp.protocol.version"], revision.as_str());
            assert_eq!(calls.0["network.transport"], "pipe");
            for (attributes, _) in &points {
                for absent in ["jsonrpc.request.id", "mcp.session.id", "mcp.resource.uri"] {
                    assert!(!attributes.contains_key(absent), "{attributes:?}");
                }
            }
        }
        assert!(here.points("mcp.server.operation.duration").is_empty());
    }
}

#[test]
fn a_metric_names_its_resource_on_request() {
    // Rule: [TRACE-045].
    let exported = Exported::new();
    let telemetry = exported.telemetry.clone().uris_in_metrics(true);
    let host = host(Revision::LATEST).observe_operations(telemetry);
    let (client, mut pair) = connect(&server(), &host);
    pair.run(client.read_resource("file:///a")).unwrap();
    let point = exported.point("mcp.client.operation.duration", "resources/read");
    assert_eq!(point["mcp.resource.uri"], "file:///a");
}

#[test]
fn the_duration_of_sessions_is_measured_where_there_are_sessions() {
    // Rule: [TRACE-043] [TRACE-044].
    const NAMES: [&str; 2] = ["mcp.client.session.duration", "mcp.server.session.duration"];
    for revision in Revision::ALL {
        let (there, here, client, mut pair) = observed(revision);
        pair.run(client.call_tool("fail", &NoArguments {})).unwrap();
        assert!(here.points(NAMES[0]).is_empty() && there.points(NAMES[1]).is_empty());
        client.close();
        pair.run_until_idle();
        drop(pair);
        for (exported, name) in [&here, &there].into_iter().zip(NAMES) {
            let points = exported.points(name);
            assert_eq!(points.len(), usize::from(revision < Revision::V2026_07_28), "{name}");
            for (attributes, point) in points {
                assert_eq!((point.count, &*point.bounds), (1, &BOUNDS[..]));
                assert_eq!(attributes["mcp.protocol.version"], revision.as_str());
                assert_eq!(attributes["network.transport"], "pipe");
                assert!(!attributes.contains_key("error.type"));
            }
        }
    }
}

#[test]
fn sessions_over_http_end_when_the_client_deletes_them() {
    // Rule: [TRACE-043].
    let (there, here, client, mut pair) = observed_over_http(Revision::V2025_11_25);
    client.close();
    pair.run_until_idle();
    for (exported, name) in
        [(&here, "mcp.client.session.duration"), (&there, "mcp.server.session.duration")]
    {
        let points = exported.points(name);
        assert_eq!(points.len(), 1, "{name}");
        assert_eq!(points[0].0["network.protocol.name"], "http");
    }
}

#[test]
fn a_name_that_no_handler_has_is_in_no_metric_of_the_server() {
    // Rule: [TRACE-014] [TRACE-015].
    let exported = Exported::new();
    let server = server().observe_operations(exported.telemetry.clone()).middleware(
        async |_: ServerRequest, _: Next| {
            let error = ErrorObject::new(ErrorCode(7), "too many");
            Err(HandlerError::Protocol(error))
        },
    );
    let (client, mut pair) = connect(&server, &host(Revision::LATEST));
    for name in ["chosen", "by", "a", "peer"] {
        pair.run(client.call_tool(name, &NoArguments {})).unwrap_err();
        pair.run(client.get_prompt(name, [])).unwrap_err();
    }
    for (point, _) in exported.points("mcp.server.operation.duration") {
        for absent in ["gen_ai.tool.name", "gen_ai.prompt.name"] {
            assert!(!point.contains_key(absent), "{point:?}");
        }
    }
}

#[test]
fn a_metric_of_the_client_names_no_code_that_only_its_server_has_chosen() {
    let answers = [(1_764_524_612_345, "_OTHER"), (-1, "_OTHER"), (-32603, "-32603")];
    for (code, expected) in answers {
        let server = Server::new("s", "1").tool("fail", "", move |_: Call<NoArguments>| {
            let error = ErrorObject::new(ErrorCode(code), "the message");
            Err::<String, _>(HandlerError::Protocol(error))
        });
        let exported = Exported::new();
        let host = host(Revision::LATEST).observe_operations(exported.telemetry.clone());
        let (client, mut pair) = connect(&server, &host);
        pair.run(client.call_tool("fail", &NoArguments {})).unwrap_err();
        let point = exported.point("mcp.client.operation.duration", "tools/call");
        assert_eq!(point["rpc.response.status_code"], expected);
        assert_eq!(point["error.type"], expected);
        let span = attributes(&exported.span("tools/call fail", SpanKind::Client));
        assert_eq!(span["error.type"], code.to_string());
    }
}

#[test]
fn a_name_that_its_server_does_not_know_is_in_no_metric_of_the_client() {
    // Rule: [TRACE-014] [TRACE-015].
    let (_, here, client, mut pair) = observed(Revision::LATEST);
    for name in ["made", "up"] {
        pair.run(client.call_tool(name, &NoArguments {})).unwrap_err();
    }
    let point = here.point("mcp.client.operation.duration", "tools/call");
    assert!(!point.contains_key("gen_ai.tool.name"), "{point:?}");
}
