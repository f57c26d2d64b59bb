//! Telemetry with exporters in memory, and the data that they have received.

use std::collections::BTreeMap;

use mcp_sansio_telemetry::Telemetry;
use opentelemetry::propagation::TextMapCompositePropagator;
use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, HistogramDataPoint, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};

/// One side's telemetry.
pub(crate) struct Exported {
    pub(crate) telemetry: Telemetry,
    pub(crate) tracers: SdkTracerProvider,
    spans: InMemorySpanExporter,
    meters: SdkMeterProvider,
    metrics: InMemoryMetricExporter,
}

impl Exported {
    pub(crate) fn new() -> Self {
        let spans = InMemorySpanExporter::default();
        let tracers = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
        let metrics = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(metrics.clone()).build();
        let meters = SdkMeterProvider::builder().with_reader(reader).build();
        let propagator = TextMapCompositePropagator::new(vec![
            Box::new(TraceContextPropagator::new()),
            Box::new(BaggagePropagator::new()),
        ]);
        let telemetry = Telemetry::new(&tracers, &meters).propagator(propagator);
        Self { telemetry, tracers, spans, meters, metrics }
    }

    /// Returns the spans that have ended, in the order of their end.
    pub(crate) fn spans(&self) -> Vec<SpanData> {
        self.spans.get_finished_spans().unwrap()
    }

    /// Returns the only span of this name and kind.
    #[track_caller]
    pub(crate) fn span(&self, name: &str, kind: SpanKind) -> SpanData {
        let all = self.spans();
        let found = all.iter().filter(|span| span.name == name && span.span_kind == kind);
        let found: Vec<_> = found.collect();
        let names: Vec<_> = all.iter().map(|span| (&span.name, &span.span_kind)).collect();
        assert_eq!(found.len(), 1, "{name}: {names:?}");
        found[0].clone()
    }

    /// Returns the data points of a histogram, each with its attributes.
    pub(crate) fn points(&self, name: &str) -> Vec<(BTreeMap<String, String>, Point)> {
        self.metrics.reset();
        self.meters.force_flush().unwrap();
        let mut found = Vec::new();
        for resource in self.metrics.get_finished_metrics().unwrap() {
            for metric in resource.scope_metrics().flat_map(|scope| scope.metrics()) {
                if metric.name() != name {
                    continue;
                }
                assert_eq!(metric.unit(), "s");
                let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
                    panic!("{metric:?}")
                };
                found.extend(histogram.data_points().map(|point| {
                    let attributes = point
                        .attributes()
                        .map(|attribute| (attribute.key.to_string(), attribute.value.to_string()));
                    (attributes.collect(), Point::new(point))
                }));
            }
        }
        found
    }

    /// Returns the attributes of the only data point of a method.
    #[track_caller]
    pub(crate) fn point(&self, name: &str, method: &str) -> BTreeMap<String, String> {
        let all = self.points(name);
        let of_method = |it: &&(BTreeMap<String, String>, Point)| it.0["mcp.method.name"] == method;
        let found: Vec<_> = all.iter().filter(of_method).collect();
        assert_eq!(found.len(), 1, "{method}: {all:?}");
        found[0].0.clone()
    }
}

/// A data point.
#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) count: u64,
    pub(crate) bounds: Vec<f64>,
}

impl Point {
    fn new(point: &HistogramDataPoint<f64>) -> Self {
        Self { count: point.count(), bounds: point.bounds().collect() }
    }
}

/// Returns the attributes of a span as text.
pub(crate) fn attributes(span: &SpanData) -> BTreeMap<String, String> {
    let all = span.attributes.iter();
    let all: BTreeMap<String, String> =
        all.map(|it| (it.key.to_string(), it.value.to_string())).collect();
    assert_eq!(all.len(), span.attributes.len(), "an attribute is repeated");
    all
}
