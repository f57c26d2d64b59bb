use std::fmt;
use std::sync::Arc;

use mcp_sansio::peer::{
    CallContext, Observation, Operation, OperationObserver, OperationTransport,
};
use mcp_sansio::{Revision, Side};
use opentelemetry::global::BoxedTracer;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::metrics::noop::NoopMeterProvider;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::noop::NoopTracerProvider;
use opentelemetry::trace::{Tracer, TracerProvider};
use opentelemetry::{Context, InstrumentationScope, global};

use crate::metrics::Metrics;
use crate::propagation::Propagators;
use crate::span::{CallerContext, OperationSpan, SessionTimer};

/// Reports the operations of servers and clients as spans and metrics.
///
/// Pass a clone to [`Server::observe_operations`](mcp_sansio_handlers::Server::observe_operations)
/// or [`Host::observe_operations`](mcp_sansio_handlers::Host::observe_operations). Clones share
/// everything.
///
/// ```
/// use mcp_sansio_handlers::{Host, Server};
/// use mcp_sansio_telemetry::Telemetry;
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use opentelemetry_sdk::trace::SdkTracerProvider;
///
/// let tracers = SdkTracerProvider::builder().build();
/// let meters = SdkMeterProvider::builder().build();
/// let telemetry = Telemetry::new(&tracers, &meters);
///
/// let server = Server::new("weather", "1.0.0").observe_operations(telemetry.clone());
/// let host = Host::new("editor", "1.0.0").observe_operations(telemetry);
/// # let _ = (server, host);
/// ```
#[derive(Clone)]
pub struct Telemetry(Arc<Shared>);

/// State that all operations share.
pub(crate) struct Shared {
    pub(crate) tracer: Arc<BoxedTracer>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) propagators: Arc<Propagators>,
    pub(crate) options: Options,
}

impl Telemetry {
    /// Reports to these providers. Context is propagated by the propagators of the process
    /// ([`set_text_map_propagator`](opentelemetry::global::set_text_map_propagator)), which
    /// propagate nothing unless they are set; [`propagator`](Self::propagator) sets others.
    #[must_use]
    pub fn new<P>(tracers: &P, meters: &impl MeterProvider) -> Self
    where
        P: TracerProvider<Tracer: Tracer<Span: Send + Sync + 'static> + Send + Sync + 'static>,
    {
        let scope = scope();
        let tracer = BoxedTracer::new(Box::new(tracers.tracer_with_scope(scope.clone())));
        let metrics = Metrics::new(&meters.meter_with_scope(scope));
        Self(Arc::new(Shared {
            tracer: Arc::new(tracer),
            metrics: Arc::new(metrics),
            propagators: Arc::default(),
            options: Options::default(),
        }))
    }

    /// Reports to the providers of the process, which must be set before.
    #[must_use]
    pub fn global() -> Self {
        let scope = scope();
        Self(Arc::new(Shared {
            tracer: Arc::new(global::tracer_with_scope(scope.clone())),
            metrics: Arc::new(Metrics::new(&global::meter_with_scope(scope))),
            propagators: Arc::default(),
            options: Options::default(),
        }))
    }

    /// Reports as spans of `tracing` alone: see [`tracing_spans`](Self::tracing_spans).
    ///
    /// ```
    /// use mcp_sansio_handlers::Server;
    /// use mcp_sansio_telemetry::Telemetry;
    ///
    /// let server = Server::new("weather", "1.0.0").observe_operations(Telemetry::tracing_only());
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn tracing_only() -> Self {
        Self::new(&NoopTracerProvider::new(), &NoopMeterProvider::new()).tracing_spans(true)
    }

    /// Sets the propagator of context in `_meta`, in place of those of the process.
    #[must_use]
    pub fn propagator(self, propagator: impl TextMapPropagator + Send + Sync + 'static) -> Self {
        let propagators = Arc::new(Propagators::Own(Box::new(propagator)));
        self.change(|shared| shared.propagators = propagators)
    }

    /// Sets whether spans contain the arguments and results of tools and the arguments of prompts;
    /// by default they do not. They may be sensitive and large.
    // MCP 2026-07-28 otel:spans.yaml#mcp.client [TRACE-037] [TRACE-038]
    #[must_use]
    pub fn payloads(self, record: bool) -> Self {
        self.change(|shared| shared.options.payloads = record)
    }

    /// Sets whether names of spans contain the URI of a resource; by default they do not. Turn it
    /// on only if there are few resources.
    // MCP 2026-07-28 otel:mcp#client [TRACE-011] [TRACE-012]
    #[must_use]
    pub fn uris_in_span_names(self, record: bool) -> Self {
        self.change(|shared| shared.options.uris_in_names = record)
    }

    /// Sets whether metrics have the URI of a resource as attribute; by default they do not. Turn
    /// it on only if there are few resources: each is a time series of its own.
    // MCP 2026-07-28 otel:metrics.yaml#mcp.operation.metrics.attributes [TRACE-045]
    #[must_use]
    pub fn uris_in_metrics(self, record: bool) -> Self {
        self.change(|shared| shared.options.uris_in_metrics = record)
    }

    /// Sets whether spans contain the id of a session; by default they do, as the conventions ask.
    /// Without authorization the id is all that a client needs to act in the session, so turn it
    /// off if others can read the traces.
    #[must_use]
    pub fn session_ids(self, record: bool) -> Self {
        self.change(|shared| shared.options.session_ids = record)
    }

    /// Sets whether spans and the access log contain the address of the other side, and metrics of
    /// sent operations the server's; by default they do.
    #[must_use]
    pub fn peer_addresses(self, record: bool) -> Self {
        self.change(|shared| shared.options.addresses = record)
    }

    /// Sets whether notifications are reported; by default they are. Servers that report much
    /// progress may turn it off.
    #[must_use]
    pub fn notifications(self, report: bool) -> Self {
        self.change(|shared| shared.options.notifications = report)
    }

    /// Sets whether a tool call in the context of a [`tool_span`](crate::tool_span()) uses that
    /// span and gets none of its own; by default it gets its own.
    // MCP 2026-07-28 otel:mcp#client [TRACE-039] [TRACE-040]
    #[must_use]
    pub fn outer_tool_spans(self, join: bool) -> Self {
        self.change(|shared| shared.options.outer_tool_spans = join)
    }

    /// Sets whether the trace context that a peer sends is linked, in place of being the parent of
    /// the operations that it requests; by default it is the parent, as the conventions ask. Turn
    /// it on for a server whose clients are not trusted: a client could otherwise choose the trace
    /// in which operations appear, whether they are sampled, and the baggage that handlers pass on.
    /// The context that a layer around the server has entered stays the parent.
    #[must_use]
    pub fn link_peers(self, link: bool) -> Self {
        self.change(|shared| shared.options.links_peers = link)
    }

    /// Sets whether operations are spans of `tracing`, too, with the target `mcp_sansio::operation`
    /// at the level INFO; by default they are not.
    ///
    /// They are named `mcp.client` at the sender and `mcp.server` at the receiver, because names
    /// are constants in `tracing`. `otel.name`, `otel.kind` and `otel.status_code` contain what the
    /// conventions ask for, as layers that convert spans for OpenTelemetry expect it; the other
    /// fields are the attributes of the conventions, without the arguments of prompts. A handler
    /// runs in the span of its request. The parent of a received operation is the span in which its
    /// connection is driven, that of a sent one the span of the call.
    ///
    /// If such a layer is installed, [`tracing_only`](Self::tracing_only) avoids a second set of
    /// spans.
    #[must_use]
    pub fn tracing_spans(self, write: bool) -> Self {
        self.change(|shared| shared.options.tracing_spans = write)
    }

    /// Sets whether a line is written for each operation, as an event of `tracing` with the target
    /// `mcp_sansio::access` at the level INFO; by default none is. It contains no payload.
    #[must_use]
    pub fn access_log(self, write: bool) -> Self {
        self.change(|shared| shared.options.access_log = write)
    }

    /// Sets whether the access log names the authenticated sender; by default it does not.
    #[must_use]
    pub fn principals_in_access_log(self, write: bool) -> Self {
        self.change(|shared| shared.options.principals = write)
    }

    fn change(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        let shared = Arc::get_mut(&mut self.0);
        if let Some(shared) = shared {
            change(shared);
            return self;
        }
        let mut shared = Shared {
            tracer: Arc::clone(&self.0.tracer),
            metrics: Arc::clone(&self.0.metrics),
            propagators: Arc::clone(&self.0.propagators),
            options: self.0.options,
        };
        change(&mut shared);
        Self(Arc::new(shared))
    }
}

impl OperationObserver for Telemetry {
    fn begin(&self, operation: &Operation<'_>) -> Option<Arc<dyn Observation>> {
        if operation.id.is_none() && !self.0.options.notifications {
            return None;
        }
        Some(Arc::new(OperationSpan::begin(&self.0, operation)))
    }

    fn begin_session(
        &self,
        role: Side,
        revision: Revision,
        transport: &OperationTransport,
    ) -> Option<Arc<dyn Observation>> {
        Some(Arc::new(SessionTimer::begin(&self.0, role, revision, transport)))
    }

    fn call_context(&self) -> Option<CallContext> {
        Some(CallContext::new(Arc::new(CallerContext::current(&self.0.options))))
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("options", &self.0.options).finish_non_exhaustive()
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("mcp-sansio").with_version(env!("CARGO_PKG_VERSION")).build()
}

// ------------------------------------------------------------------ the switches of telemetry

/// Switches of [`Telemetry`], which describes them.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub(crate) struct Options {
    pub(crate) payloads: bool,
    pub(crate) uris_in_names: bool,
    pub(crate) uris_in_metrics: bool,
    pub(crate) session_ids: bool,
    pub(crate) addresses: bool,
    pub(crate) notifications: bool,
    pub(crate) outer_tool_spans: bool,
    pub(crate) links_peers: bool,
    pub(crate) tracing_spans: bool,
    pub(crate) access_log: bool,
    pub(crate) principals: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            payloads: false,
            uris_in_names: false,
            uris_in_metrics: false,
            session_ids: true,
            addresses: true,
            notifications: true,
            outer_tool_spans: false,
            links_peers: false,
            tracing_spans: false,
            access_log: false,
            principals: false,
        }
    }
}

// ------------------------------------------------------------------ tool calls that the application traces itself

/// Marks a context whose span is that of a tool call.
#[derive(Debug)]
pub(crate) struct ToolSpan;

/// Returns `context`, whose span describes the execution of a tool, marked as such: a call of a
/// tool in it gets no span of its own if
/// [`Telemetry::outer_tool_spans`](crate::Telemetry::outer_tool_spans) is on. Its attributes are
/// added to the span of the context.
// MCP 2026-07-28 otel:mcp#client [TRACE-039]: no other way to detect such a span is reliable.
#[must_use]
pub fn tool_span(context: &Context) -> Context {
    context.with_value(ToolSpan)
}
