//! The access log, as a subscriber receives it.

use std::fmt;
use std::sync::{Arc, Mutex};

use mcp_sansio_telemetry::Telemetry;
use opentelemetry::metrics::noop::NoopMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use super::call_tools;

/// Stores the fields of events.
struct Lines(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "mcp_sansio::access" {
            let mut line = Line(String::new());
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!("{}={value:?} ", field.name()));
    }
}

#[test]
fn each_operation_is_a_line_without_payload() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let subscriber = tracing_subscriber::registry().with(Lines(Arc::clone(&lines)));
    let tracers = SdkTracerProvider::builder().build();
    let telemetry = Telemetry::new(&tracers, &NoopMeterProvider::new());
    tracing::subscriber::with_default(subscriber, || {
        call_tools(&telemetry);
        assert!(lines.lock().unwrap().is_empty());
        call_tools(&telemetry.access_log(true));
    });
    let lines = lines.lock().unwrap();
    let find = |parts: &[&str]| {
        let found = lines.iter().filter(|line| parts.iter().all(|part| line.contains(part)));
        found.count()
    };
    for direction in ["direction=\"sent\"", "direction=\"received\""] {
        assert_eq!(find(&[direction, "subject=\"now\"", "method=\"tools/call\""]), 1, "{lines:?}");
        assert_eq!(find(&[direction, "subject=\"fail\"", "error_type=\"tool_error\""]), 1);
        assert_eq!(find(&[direction, "method=\"server/discover\"", "request_id=\"1\""]), 1);
    }
    assert_eq!(find(&["revision=\"2026-07-28\"", "duration_us=", "trace_id=\""]), lines.len());
    assert_eq!(find(&["noon"]), 0, "{lines:?}");
}
