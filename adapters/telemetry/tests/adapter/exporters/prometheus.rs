//! The text that Prometheus scrapes.

use mcp_sansio_telemetry::Telemetry;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prometheus::{Registry, TextEncoder};

use super::call_tools;

#[test]
fn the_histograms_are_exposed() {
    // Rule: [TRACE-041] [TRACE-042] [TRACE-044].
    let registry = Registry::new();
    let reader =
        opentelemetry_prometheus::exporter().with_registry(registry.clone()).build().unwrap();
    let meters = SdkMeterProvider::builder().with_reader(reader).build();
    let telemetry = Telemetry::new(&SdkTracerProvider::builder().build(), &meters);
    call_tools(&telemetry);
    let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    let count = |name: &str, label: &str| {
        let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(label));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>()
    };
    for name in ["mcp_client_operation_duration_seconds", "mcp_server_operation_duration_seconds"] {
        let total = format!("{name}_count");
        assert!((count(&total, "gen_ai_tool_name=\"now\"") - 1.0).abs() < 0.1, "{text}");
        assert!((count(&total, "error_type=\"tool_error\"") - 1.0).abs() < 0.1, "{text}");
        for bound in ["0.01", "0.5", "300", "+Inf"] {
            let bucket = format!("le=\"{bound}\"");
            assert!(count(&format!("{name}_bucket"), &bucket) >= 1.0, "{bound}: {text}");
        }
    }
}

#[test]
fn the_dashboard_uses_names_that_are_exposed() {
    let dashboard = include_str!("../../../../../docs/grafana-dashboard.json");
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let names = dashboard.split(|char| !is_name(char));
    let mut metrics: Vec<&str> = names.filter(|name| name.starts_with("mcp_")).collect();
    metrics.sort_unstable();
    metrics.dedup();
    let sides = ["mcp_client", "mcp_server"];
    let expected = |name: &str| {
        let labels = ["mcp_method_name", "mcp_protocol_version", "mcp_"];
        let is_metric = |kind: &str| {
            let histogram = sides.map(|side| format!("{side}_{kind}_duration_seconds"));
            histogram.iter().any(|histogram| {
                ["_count", "_bucket"].iter().any(|part| *name == format!("{histogram}{part}"))
            })
        };
        labels.contains(&name) || is_metric("operation") || is_metric("session")
    };
    let unknown: Vec<_> = metrics.iter().filter(|name| !expected(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(metrics.len() >= 10, "{metrics:?}");
}
