//! Trace context in `_meta` and in HTTP header fields.

use std::collections::HashMap;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::OperationTransport;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry::{Context, global};

/// The propagators in use.
#[derive(Default)]
pub(crate) enum Propagators {
    /// Those that the application has set for the process.
    #[default]
    Global,
    Own(Box<dyn TextMapPropagator + Send + Sync>),
}

impl Propagators {
    fn with<R>(&self, mut use_it: impl FnMut(&dyn TextMapPropagator) -> R) -> R {
        match self {
            Self::Global => global::get_text_map_propagator(|propagator| use_it(propagator)),
            Self::Own(propagator) => use_it(&**propagator),
        }
    }

    /// Returns the members of `_meta` for a message that is sent in `context`.
    // MCP 2026-07-28 otel:mcp#context-propagation [TRACE-004] [TRACE-005]
    // MCP 2026-07-28 extensions:SEP-414#specification [TRACE-001] [TRACE-002]: as the propagators
    // write them, without a prefix.
    pub(crate) fn inject(&self, context: &Context) -> HashMap<String, String> {
        let mut members = HashMap::new();
        self.with(|propagator| propagator.inject_context(context, &mut members));
        // Without a state the propagator of W3C writes an empty one.
        members.retain(|_, value: &mut String| !value.is_empty());
        members
    }

    /// Returns the context in a `_meta`, if there is a valid one. Baggage alone is a context, too.
    pub(crate) fn extract(&self, meta: Option<&RawJson<'_>>) -> Option<Context> {
        let meta = meta?;
        self.with(|propagator| {
            let fields = propagator.fields().filter_map(|field| {
                Some((field.to_ascii_lowercase(), meta.get(field)?.to_text()?.into_owned()))
            });
            let fields: HashMap<String, String> = fields.collect();
            (!fields.is_empty()).then(|| propagator.extract_with_context(&Context::new(), &fields))
        })
    }

    /// Returns the context of the HTTP request that carried a message: the one that a layer around
    /// the server has entered, or else the one in its header fields.
    // MCP 2026-07-28 otel:mcp#context-propagation [TRACE-007]
    pub(crate) fn ambient(&self, transport: &OperationTransport) -> Option<Context> {
        let current = Context::current();
        if current.has_active_span() {
            return Some(current);
        }
        let fields =
            [("traceparent", &transport.traceparent), ("tracestate", &transport.tracestate)];
        let fields = fields.into_iter().filter_map(|(name, value)| {
            value.as_ref().map(|value| (name.to_owned(), value.clone()))
        });
        let fields: HashMap<String, String> = fields.collect();
        if fields.is_empty() {
            return None;
        }
        let context =
            self.with(|propagator| propagator.extract_with_context(&Context::new(), &fields));
        context.span().span_context().is_valid().then_some(context)
    }
}
