//! Traces of a program: a line on standard error for each request and notification.
//!
//! A package of its own, because OpenTelemetry takes a tenth of the time to build a program.

#![forbid(unsafe_code)]

use std::future::{Ready, ready};
use std::io::Write;
use std::time::Duration;

use mcp_sansio::Printable;
use mcp_sansio_telemetry::Telemetry;
use opentelemetry::metrics::noop::NoopMeterProvider;
use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};

/// Returns telemetry that writes a line for each span that ends.
#[must_use]
pub fn telemetry() -> Telemetry {
    let tracers = SdkTracerProvider::builder().with_simple_exporter(Lines).build();
    Telemetry::new(&tracers, &NoopMeterProvider::new()).propagator(TraceContextPropagator::new())
}

/// An exporter that writes lines.
#[derive(Debug)]
struct Lines;

impl SpanExporter for Lines {
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        for span in batch {
            // There is nothing left to report a failure to.
            let _ = writeln!(std::io::stderr(), "{}", Printable::new(&line(&span)));
        }
        let done: Ready<OTelSdkResult> = ready(Ok(()));
        done
    }
}

/// Returns the line of a span: its direction, name, outcome, duration and place in the trace.
fn line(span: &SpanData) -> String {
    let direction = if span.span_kind == SpanKind::Client { "sent" } else { "received" };
    let attribute = |name: &str| {
        let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
        found.map(|attribute| attribute.value.to_string())
    };
    let id = attribute("jsonrpc.request.id").map(|id| format!(" #{id}")).unwrap_or_default();
    let outcome = match (&span.status, attribute("rpc.response.status_code")) {
        (Status::Error { .. }, _) => attribute("error.type").unwrap_or_default(),
        (_, Some(code)) => code,
        _ if attribute("mcp_sansio.cancelled").is_some() => "cancelled".into(),
        _ => "ok".into(),
    };
    let time = span.end_time.duration_since(span.start_time).unwrap_or(Duration::ZERO);
    let parent = match span.parent_span_id {
        SpanId::INVALID => String::new(),
        parent => format!(" parent {parent}"),
    };
    let context = &span.span_context;
    let (trace, own) = (context.trace_id(), context.span_id());
    let name = &span.name;
    format!(
        "trace: {direction} {name}{id}: {outcome}, {time:.1?}, trace {trace} span {own}{parent}"
    )
}
