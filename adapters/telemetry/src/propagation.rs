//! Trace context in `_meta` and in HTTP header fields.

use std::borrow::Cow;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::OperationTransport;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
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

    /// Passes the members of `_meta` for a message that is sent in `context` to `add`, sorted by
    /// key.
    // MCP 2026-07-28 otel:mcp#context-propagation [TRACE-004] [TRACE-005]
    // MCP 2026-07-28 extensions:SEP-414#specification [TRACE-001] [TRACE-002]: as the propagators
    // write them, without a prefix.
    pub(crate) fn inject(&self, context: &Context, add: &mut dyn FnMut(&str, &str)) {
        self.with(|propagator| {
            let mut members = Members { propagator, all: Vec::with_capacity(2) };
            propagator.inject_context(context, &mut members);
            members.all.sort_unstable();
            for (key, value) in &members.all {
                add(key, value);
            }
        });
    }

    /// Returns the context in a `_meta`, if there is a valid one. Baggage alone is a context, too.
    pub(crate) fn extract(&self, meta: Option<&RawJson<'_>>) -> Option<Context> {
        let meta = meta?;
        self.with(|propagator| {
            let fields = propagator.fields();
            let fields = fields.filter_map(|name| Some((name, meta.get(name)?.to_text()?)));
            Fields(fields.collect()).extract(propagator)
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
        let fields = fields.into_iter();
        let fields = fields.filter_map(|(name, value)| Some((name, value.as_deref()?.into())));
        let context = self.with(|propagator| Fields(fields.clone().collect()).extract(propagator));
        context.filter(|context| context.span().span_context().is_valid())
    }
}

/// The members of a `_meta`, as a propagator writes them. The last one with a key counts.
struct Members<'p> {
    propagator: &'p dyn TextMapPropagator,
    all: Vec<(Cow<'p, str>, String)>,
}

impl Injector for Members<'_> {
    fn set(&mut self, key: &str, value: String) {
        let is_lower = |name: &str| !name.bytes().any(|byte| byte.is_ascii_uppercase());
        let known = self.propagator.fields().find(|name| *name == key && is_lower(name));
        let key = known.map_or_else(|| key.to_lowercase().into(), Cow::Borrowed);
        self.all.retain(|(other, _)| *other != key);
        // Without a state the propagator of W3C writes an empty one.
        if !value.is_empty() {
            self.all.push((key, value));
        }
    }
}

/// The fields of a message, by the names that their propagator knows.
struct Fields<'a>(Vec<(&'a str, Cow<'a, str>)>);

impl Fields<'_> {
    /// Returns the context in the fields, if there are any.
    fn extract(&self, propagator: &dyn TextMapPropagator) -> Option<Context> {
        (!self.0.is_empty()).then(|| propagator.extract_with_context(&Context::new(), self))
    }
}

impl Extractor for Fields<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
        found.map(|(_, value)| &**value)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }
}
