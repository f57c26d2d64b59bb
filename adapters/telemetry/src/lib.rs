//! Spans, metrics and an access log for servers and clients of `mcp-sansio`, by the
//! [conventions of OpenTelemetry for MCP](https://github.com/open-telemetry/semantic-conventions-genai).
//!
//! [`Telemetry`] observes every request and notification of a connection, sent or received, on any
//! transport: also those that the protocol answers itself, and those that are refused.
//!
//! | Signal | Content |
//! | --- | --- |
//! | spans | one per request or notification: kind CLIENT at the sender, SERVER at the receiver |
//! | metrics | histograms `mcp.client.operation.duration`, `mcp.server.operation.duration`, `mcp.client.session.duration`, `mcp.server.session.duration`, in seconds |
//! | context | `traceparent`, `tracestate` and `baggage` in `_meta`, written by the sender and read by the receiver |
//! | spans of `tracing` | the same spans with the same attributes |
//! | access log | one event of `tracing` per operation |
//!
//! The crate depends on the API of OpenTelemetry only. The application chooses the SDK and the
//! exporters: OTLP, Prometheus, or others.
//!
//! Handlers run in the context of their request: spans that they create are children of its span,
//! calls that they make continue the trace, and [`OperationInfo::current`] describes the request.
//!
//! No arguments and results are recorded, unless [`Telemetry::payloads`] asks for them.

#![forbid(unsafe_code)]
mod attribute;
mod description;
mod metrics;
mod operation;
mod propagation;
mod span;
mod telemetry;

pub use operation::OperationInfo;
pub use telemetry::{Telemetry, tool_span};
