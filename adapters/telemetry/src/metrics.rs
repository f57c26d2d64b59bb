//! The four histograms.

use std::time::Duration;

use mcp_sansio::Side;
use mcp_sansio::peer::Direction;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};

/// The bounds of the buckets, in seconds.
// MCP 2026-07-28 otel:mcp#metric-mcpclientoperationduration [TRACE-044]
const BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

#[derive(Debug)]
pub(crate) struct Metrics {
    sent: Histogram<f64>,
    received: Histogram<f64>,
    client_sessions: Histogram<f64>,
    server_sessions: Histogram<f64>,
}

impl Metrics {
    pub(crate) fn new(meter: &Meter) -> Self {
        let histogram = |name: &'static str, description: &'static str| {
            let histogram = meter.f64_histogram(name).with_unit("s");
            histogram.with_description(description).with_boundaries(BOUNDS.into()).build()
        };
        Self {
            // MCP 2026-07-28 otel:metrics.yaml#mcp.client.operation.duration [TRACE-041]
            sent: histogram(
                "mcp.client.operation.duration",
                "The duration of the MCP request or notification as observed on the sender from \
                 the time it was sent until the response or ack is received.",
            ),
            // MCP 2026-07-28 otel:metrics.yaml#mcp.server.operation.duration [TRACE-042]
            received: histogram(
                "mcp.server.operation.duration",
                "MCP request or notification duration as observed on the receiver from the time \
                 it was received until the result or ack is sent.",
            ),
            // MCP 2025-11-25 otel:metrics.yaml#mcp.client.session.duration [TRACE-043]
            client_sessions: histogram(
                "mcp.client.session.duration",
                "The duration of the MCP session as observed on the MCP client.",
            ),
            server_sessions: histogram(
                "mcp.server.session.duration",
                "The duration of the MCP session as observed on the MCP server.",
            ),
        }
    }

    pub(crate) fn operation(&self, direction: Direction, time: Duration, attributes: &[KeyValue]) {
        let histogram = if direction == Direction::Sent { &self.sent } else { &self.received };
        histogram.record(time.as_secs_f64(), attributes);
    }

    pub(crate) fn session(&self, role: Side, time: Duration, attributes: &[KeyValue]) {
        let histogram = match role {
            Side::Client => &self.client_sessions,
            Side::Server => &self.server_sessions,
        };
        histogram.record(time.as_secs_f64(), attributes);
    }
}
