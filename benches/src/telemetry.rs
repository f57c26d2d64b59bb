//! The cost of telemetry: spans and metrics of both sides of each call.

use std::future::{Future, ready};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_sansio_telemetry::Telemetry;
use opentelemetry::Context;
use opentelemetry::trace::{SpanId, TraceId};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{IdGenerator, SdkTracerProvider, Span, SpanData, SpanProcessor};

use crate::budgets::{Scenario, scenario};
use crate::{Echo, Endpoints, REVISIONS};

/// Returns the scenarios with telemetry.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let echo = |revision: mcp_sansio::Revision| {
        scenario(format!("echo 64 B with telemetry, {revision}"), 1, 100, move || {
            let tracers = SdkTracerProvider::builder()
                .with_id_generator(Counted(AtomicU64::new(1)))
                .with_span_processor(Dropped)
                .build();
            let reader = PeriodicReader::builder(Dropped).with_interval(HOUR).build();
            let meters = SdkMeterProvider::builder().with_reader(reader).build();
            let propagator = TraceContextPropagator::new();
            let telemetry = Telemetry::new(&tracers, &meters).propagator(propagator);
            let mut endpoints = Endpoints::open_observed(revision, telemetry);
            let echo = Echo::new(64);
            move || {
                endpoints.echo(&echo);
                let _ = (&tracers, &meters);
            }
        })
    };
    REVISIONS[1..].iter().copied().map(echo).collect()
}

/// Longer than any run, so that no export is counted.
const HOUR: Duration = Duration::from_secs(3600);

/// Ids that are the same in each run. They have as many digits as those of the SDK.
#[derive(Debug)]
struct Counted(AtomicU64);

impl IdGenerator for Counted {
    fn new_trace_id(&self) -> TraceId {
        TraceId::from(!u128::from(self.0.fetch_add(1, Ordering::Relaxed)))
    }

    fn new_span_id(&self) -> SpanId {
        SpanId::from(!self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Drops spans and metrics, in place of exporters.
#[derive(Debug)]
struct Dropped;

impl SpanProcessor for Dropped {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        drop(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl PushMetricExporter for Dropped {
    fn export(&self, _: &ResourceMetrics) -> impl Future<Output = OTelSdkResult> + Send {
        ready(Ok(()))
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}
