//! The access log, as a subscriber receives it.

use std::fmt;
use std::sync::{Arc, Mutex};

use mcp_sansio::http::{HttpServerOptions, RequestHead};
use mcp_sansio::{Caller, Instant};
use mcp_sansio_handlers::Server;
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

#[test]
fn a_line_has_the_address_of_the_client_unless_it_is_turned_off() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let subscriber = tracing_subscriber::registry().with(Lines(Arc::clone(&lines)));
    let tracers = SdkTracerProvider::builder().build();
    let telemetry = Telemetry::new(&tracers, &NoopMeterProvider::new()).access_log(true);
    let mut head = RequestHead::new("POST", "/mcp");
    head.field("host", b"localhost");
    head.field("content-type", b"application/json");
    head.field("accept", b"application/json, text/event-stream");
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    head.remote_address(std::net::IpAddr::from([192, 0, 2, 1]));
    tracing::subscriber::with_default(subscriber, || {
        for telemetry in [telemetry.clone(), telemetry.peer_addresses(false)] {
            let server = Server::new("s", "1").observe_operations(telemetry);
            let mut server = server.http(HttpServerOptions::new(), [7; 32], 42).unwrap();
            let _ = server.handle_request(&head, ping, &Caller::ANONYMOUS, Instant::ZERO);
        }
    });
    let lines = lines.lock().unwrap();
    let shown: Vec<bool> = lines.iter().map(|line| line.contains("192.0.2.1")).collect();
    assert_eq!(shown, [true, false], "{lines:?}");
}
