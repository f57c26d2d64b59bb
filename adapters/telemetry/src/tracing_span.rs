//! Spans of `tracing`, with the names and attributes of those of OpenTelemetry.

use std::sync::{Mutex, PoisonError};

use mcp_sansio::peer::Direction;
use opentelemetry::{KeyValue, Value};
use tracing::Span;

use crate::attribute;

/// The span of an operation, until that ends.
#[derive(Debug)]
pub(crate) struct TracingSpan(Mutex<Option<Span>>);

/// Creates a span with all fields that it may have: `tracing` knows no others later. Those that are
/// known at the beginning are found in `$attributes`.
macro_rules! span {
    ($name:literal, $kind:literal, $parent:expr, $title:expr, $attributes:expr) => {{
        let (text, number) = (|name| text_of($attributes, name), |name| number_of($attributes, name));
        tracing::info_span!(
            target: "mcp_sansio::operation",
            parent: $parent,
            $name,
            otel.name = $title,
            otel.kind = $kind,
            otel.status_code = tracing::field::Empty,
            mcp.method.name = text(attribute::METHOD_NAME),
            mcp.protocol.version = text(attribute::PROTOCOL_VERSION),
            mcp.resource.uri = text(attribute::RESOURCE_URI),
            mcp.session.id = text(attribute::SESSION_ID),
            gen_ai.operation.name = text(attribute::OPERATION_NAME),
            gen_ai.prompt.name = text(attribute::PROMPT_NAME),
            gen_ai.tool.name = text(attribute::TOOL_NAME),
            gen_ai.tool.call.arguments = text(attribute::TOOL_ARGUMENTS),
            gen_ai.tool.call.result = tracing::field::Empty,
            jsonrpc.request.id = text(attribute::REQUEST_ID),
            rpc.response.status_code = tracing::field::Empty,
            "error.type" = tracing::field::Empty,
            mcp_sansio.cancelled = tracing::field::Empty,
            network.transport = text(attribute::NETWORK_TRANSPORT),
            network.protocol.name = text(attribute::NETWORK_PROTOCOL_NAME),
            network.protocol.version = text(attribute::NETWORK_PROTOCOL_VERSION),
            client.address = text(attribute::CLIENT_ADDRESS),
            client.port = number(attribute::CLIENT_PORT),
            server.address = text(attribute::SERVER_ADDRESS),
            server.port = number(attribute::SERVER_PORT),
        )
    }};
}

impl TracingSpan {
    /// Begins a span. `title` is the name of the span by the conventions: in `tracing`, a name is a
    /// constant.
    // MCP 2026-07-28 otel:mcp#spans [TRACE-008]
    // MCP 2026-07-28 otel:mcp#client [TRACE-009]
    pub(crate) fn begin(
        direction: Direction,
        title: &str,
        attributes: &[KeyValue],
        parent: &Span,
    ) -> Self {
        let span = match direction {
            Direction::Sent => span!("mcp.client", "client", parent, title, attributes),
            _ => span!("mcp.server", "server", parent, title, attributes),
        };
        Self(Mutex::new(Some(span)))
    }

    /// Returns the span, unless it has ended.
    pub(crate) fn get(&self) -> Span {
        let span = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        span.clone().unwrap_or_else(Span::none)
    }

    /// Adds attributes that are known at the end.
    pub(crate) fn record(&self, attributes: &[KeyValue]) {
        let span = self.get();
        for KeyValue { key, value, .. } in attributes {
            span.record(key.as_str(), &*value.as_str());
        }
    }

    /// Sets the name by the conventions.
    pub(crate) fn rename(&self, title: &str) {
        self.get().record("otel.name", title);
    }

    /// Marks the span as failed.
    pub(crate) fn fail(&self) {
        self.get().record("otel.status_code", "ERROR");
    }

    /// Ends the span.
    pub(crate) fn end(&self) {
        let span = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Outside of the lock: it runs the code of subscribers.
        drop(span);
    }
}

fn find<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a Value> {
    let found = attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| &attribute.value)
}

fn text_of(attributes: &[KeyValue], name: &str) -> Option<String> {
    find(attributes, name).map(|value| value.as_str().into_owned())
}

fn number_of(attributes: &[KeyValue], name: &str) -> Option<i64> {
    match find(attributes, name)? {
        Value::I64(number) => Some(*number),
        _ => None,
    }
}
