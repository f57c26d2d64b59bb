//! The posts of the OTLP exporter, as a collector decodes them.

use mcp_sansio_telemetry::Telemetry;
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prost::Message as _;

use super::call_tools;
use super::collector::{BlockingClient, Collector};

fn attribute<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

#[test]
fn a_collector_receives_spans_and_metrics() {
    // Rule: [TRACE-008] [TRACE-028] [TRACE-041] [TRACE-042] [TRACE-044].
    let collector = Collector::start();
    let endpoint = |path: &str| format!("http://{}{path}", collector.address);
    let spans = SpanExporter::builder()
        .with_http()
        .with_http_client(BlockingClient)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(endpoint("/v1/traces"))
        .build()
        .unwrap();
    let metrics = MetricExporter::builder()
        .with_http()
        .with_http_client(BlockingClient)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(endpoint("/v1/metrics"))
        .build()
        .unwrap();
    let tracers = SdkTracerProvider::builder().with_batch_exporter(spans).build();
    let reader = PeriodicReader::builder(metrics).build();
    let meters = SdkMeterProvider::builder().with_reader(reader).build();
    let telemetry = Telemetry::new(&tracers, &meters).propagator(TraceContextPropagator::new());
    call_tools(&telemetry);
    tracers.force_flush().unwrap();
    meters.force_flush().unwrap();

    let exports = collector.exports();
    let mut spans = Vec::new();
    for export in exports.iter().filter(|export| export.path == "/v1/traces") {
        assert_eq!(export.content_type, "application/x-protobuf");
        let request = ExportTraceServiceRequest::decode(&*export.body).unwrap();
        let scopes = request.resource_spans.into_iter().flat_map(|it| it.scope_spans);
        spans.extend(scopes.flat_map(|scope| {
            assert_eq!(scope.scope.unwrap().name, "mcp-sansio");
            scope.spans
        }));
    }
    let find = |name: &str, kind: SpanKind| {
        let is_meant = |span: &&Span| span.name == name && span.kind() == kind;
        spans.iter().find(is_meant).unwrap_or_else(|| panic!("{name}"))
    };
    let sent = find("tools/call now", SpanKind::Client);
    let received = find("tools/call now", SpanKind::Server);
    assert_eq!(received.parent_span_id, sent.span_id);
    assert_eq!(received.trace_id, sent.trace_id);
    assert_eq!(attribute(sent, "gen_ai.tool.name"), Some("now"));
    assert_eq!(attribute(received, "mcp.method.name"), Some("tools/call"));
    let failed = find("tools/call fail", SpanKind::Server);
    assert_eq!(failed.status.as_ref().unwrap().code(), StatusCode::Error);
    assert_eq!(attribute(failed, "error.type"), Some("tool_error"));

    let mut names = Vec::new();
    for export in exports.iter().filter(|export| export.path == "/v1/metrics") {
        let request = ExportMetricsServiceRequest::decode(&*export.body).unwrap();
        let scopes = request.resource_metrics.into_iter().flat_map(|it| it.scope_metrics);
        for metric in scopes.flat_map(|scope| scope.metrics) {
            assert_eq!(metric.unit, "s");
            let Some(Data::Histogram(histogram)) = metric.data else { panic!() };
            for point in &histogram.data_points {
                assert_eq!(point.explicit_bounds.len(), 14);
                assert!(point.count > 0);
            }
            names.push(metric.name);
        }
    }
    names.sort();
    assert_eq!(names, ["mcp.client.operation.duration", "mcp.server.operation.duration"]);
}
