//! Tool calls that the application traces itself.

use opentelemetry::Context;

/// Marks a context whose span is that of a tool call.
#[derive(Debug)]
pub(crate) struct ToolSpan;

/// Returns `context`, whose span describes the execution of a tool, marked as such: a call of a tool
/// in it gets no span of its own if [`Telemetry::outer_tool_spans`](crate::Telemetry::outer_tool_spans)
/// is on. Its attributes are added to the span of the context.
// MCP 2026-07-28 otel:mcp#client [TRACE-039]: no other way to detect such a span is reliable.
#[must_use]
pub fn tool_span(context: &Context) -> Context {
    context.with_value(ToolSpan)
}
