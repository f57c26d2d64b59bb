//! Operations and sessions in progress.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    Direction, Observation, Operation, OperationEnd, OperationOutcome, OperationTransport,
};
use mcp_sansio::{Method, Side};
use opentelemetry::trace::{
    Link, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{Context, KeyValue, Value};
use tracing::Span;

use crate::attribute;
use crate::description::{
    Description, Subject, Transport, Verdict, push_address, push_network, push_revision,
    push_verdict,
};
use crate::operation::OperationInfo;
use crate::telemetry::{Options, Shared, ToolSpan};

/// A request or notification in progress.
pub(crate) struct OperationSpan {
    shared: Arc<Shared>,
    description: Description,
    /// The context with the span.
    context: Context,
    /// Whether the span is one of the application.
    is_outer: bool,
    tracing: Option<TracingSpan>,
    start: Instant,
    /// Whether its handler has run, so that the item that it names exists.
    has_run: AtomicBool,
    ended: AtomicBool,
}

/// Where a call was made.
pub(crate) struct CallerContext {
    context: Context,
    span: Span,
}

impl CallerContext {
    pub(crate) fn current(options: &Options) -> Self {
        Self {
            context: Context::current(),
            span: if options.tracing_spans { Span::current() } else { Span::none() },
        }
    }
}

impl OperationSpan {
    pub(crate) fn begin(shared: &Arc<Shared>, operation: &Operation<'_>) -> Self {
        let description = Description::new(operation);
        let options = &shared.options;
        let (parent, links) = parent(shared, operation);
        // MCP 2026-07-28 otel:mcp#client [TRACE-039] [TRACE-040]
        let is_outer = options.outer_tool_spans
            && description.direction == Direction::Sent
            && description.is_tool_call()
            && parent.get::<ToolSpan>().is_some();
        let mut attributes = description.of_span(options);
        if options.payloads {
            push_arguments(&mut attributes, operation);
        }
        let tracing = options.tracing_spans.then(|| {
            let title = description.name(None, options);
            TracingSpan::begin(description.direction, &title, &attributes, &parent_span(operation))
        });
        let context = if is_outer {
            parent.span().set_attributes(attributes);
            parent
        } else {
            // MCP 2026-07-28 otel:mcp#spans [TRACE-008]
            let kind = match description.direction {
                Direction::Sent => SpanKind::Client,
                _ => SpanKind::Server,
            };
            let builder = SpanBuilder::from_name(description.name(None, options))
                .with_kind(kind)
                .with_attributes(attributes)
                .with_links(links);
            let span = shared.tracer.build_with_context(builder, &parent);
            parent.with_span(span)
        };
        let context = match description.direction {
            Direction::Received => context.with_value(OperationInfo::new(&description)),
            _ => context,
        };
        Self {
            shared: Arc::clone(shared),
            description,
            context,
            is_outer,
            tracing,
            start: now(),
            has_run: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }
    pub(crate) const fn context(&self) -> &Context {
        &self.context
    }

    fn finish(&self, end: &OperationEnd<'_>) {
        if self.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let time = self.start.elapsed();
        let Self { shared, description, .. } = self;
        let verdict = Verdict::new(&end.outcome, description.direction);
        let is_answered = matches!(
            end.outcome,
            OperationOutcome::Done | OperationOutcome::ToolFailed | OperationOutcome::Error(_)
        );
        let span = self.context.span();
        if span.is_recording() || self.has_tracing_span() {
            self.complete(end, &verdict, is_answered);
        }
        if !self.is_outer {
            span.end();
        }
        let has_run = self.has_run.load(Ordering::Relaxed)
            || matches!(end.outcome, OperationOutcome::Done | OperationOutcome::ToolFailed);
        let answered = (&verdict, is_answered, has_run);
        let attributes = description.of_metric(answered, end.revision, &shared.options);
        shared.metrics.operation(description.direction, time, &attributes);
        {
            let span = self.tracing.as_ref().map_or_else(Span::none, TracingSpan::get);
            if shared.options.access_log {
                span.in_scope(|| write_access_log(self, end, &verdict, time));
            }
            drop(span);
            if let Some(tracing) = &self.tracing {
                tracing.end();
            }
        }
    }

    /// Adds the attributes of the outcome to the span.
    fn complete(&self, end: &OperationEnd<'_>, verdict: &Verdict, is_answered: bool) {
        let Self { shared, description, .. } = self;
        let (span, options) = (self.context.span(), &shared.options);
        let mut attributes = Vec::new();
        push_verdict(&mut attributes, verdict);
        if verdict.is_cancelled {
            attributes.push(KeyValue::new(attribute::CANCELLED, true));
        }
        if description.revision.is_none() {
            push_revision(&mut attributes, end.revision);
        }
        if description.transport.session_id.is_none()
            && let Some(id) = end.session_id.filter(|_| options.session_ids)
        {
            attributes.push(KeyValue::new(attribute::SESSION_ID, id.to_owned()));
        }
        if let Some(result) = end.result.as_ref().filter(|_| self.records_result()) {
            attributes.push(KeyValue::new(attribute::TOOL_RESULT, result.as_str().to_owned()));
        }
        if let Some(tracing) = &self.tracing {
            tracing.record(&attributes);
            if verdict.error_type.is_some() {
                tracing.fail();
            }
        }
        span.set_attributes(attributes);
        let answered = is_answered.then_some(verdict);
        if description.is_foreign(None) && !description.is_foreign(answered) && !self.is_outer {
            let name = description.name(answered, options);
            if let Some(tracing) = &self.tracing {
                tracing.rename(&name);
            }
            span.update_name(name);
        }
        // MCP 2026-07-28 otel:conventions#failure [TRACE-028]
        // MCP 2026-07-28 otel:mcp#client [TRACE-029]
        if verdict.error_type.is_some() && !self.is_outer {
            span.set_status(Status::error(verdict.message.clone().unwrap_or_default()));
        }
    }

    // MCP 2026-07-28 otel:spans.yaml#mcp.client [TRACE-037]
    fn records_result(&self) -> bool {
        self.shared.options.payloads && self.description.is_tool_call()
    }

    const fn has_tracing_span(&self) -> bool {
        self.tracing.is_some()
    }

    pub(crate) const fn description(&self) -> &Description {
        &self.description
    }
}

impl Observation for OperationSpan {
    fn meta(&self, add: &mut dyn FnMut(&str, &str)) {
        self.shared.propagators.inject(&self.context, add);
    }

    fn run(&self, part: &mut dyn FnMut()) {
        self.has_run.store(true, Ordering::Relaxed);
        let _entered = self.context.clone().attach();
        if let Some(tracing) = &self.tracing {
            return tracing.get().in_scope(part);
        }
        part();
    }

    fn wants_result(&self) -> bool {
        self.records_result() && (self.context.span().is_recording() || self.has_tracing_span())
    }

    fn end(&self, end: &OperationEnd<'_>) {
        self.finish(end);
    }
}

impl fmt::Debug for OperationSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationSpan")
            .field("method", &self.description.method)
            .finish_non_exhaustive()
    }
}

/// Reads the clock: operations are timed where they happen, like the spans of the SDK.
#[allow(clippy::disallowed_methods, reason = "an adapter has a clock")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the parent of an operation's span, and its links.
fn parent(shared: &Shared, operation: &Operation<'_>) -> (Context, Vec<Link>) {
    let carried = shared.propagators.extract(operation.meta.as_ref());
    let has_span = |context: &Context| context.span().span_context().is_valid();
    if operation.direction == Direction::Sent {
        // The caller has chosen another parent than the context in which it made the call.
        let parent = carried.filter(has_span).or_else(|| match operation.cause {
            mcp_sansio::peer::Cause::Call(context) => {
                context.get::<CallerContext>().map(|it| it.context.clone())
            }
            mcp_sansio::peer::Cause::Request(request) => {
                let request: &dyn std::any::Any = request;
                request.downcast_ref::<OperationSpan>().map(|request| request.context.clone())
            }
            _ => None,
        });
        return (parent.unwrap_or_else(Context::current), Vec::new());
    }
    if shared.options.links_peers {
        // The context of a layer around the server, which is not the peer's.
        let own = Some(Context::current()).filter(|current| current.has_active_span());
        let ambient = match own {
            Some(_) => None,
            None => shared.propagators.ambient(operation.transport),
        };
        let links = [carried, ambient].into_iter().flatten().filter(has_span);
        let links = links.map(|peer| Link::with_context(peer.span().span_context().clone()));
        return (own.unwrap_or_default(), links.collect());
    }
    // MCP 2026-07-28 otel:mcp#context-propagation [TRACE-006] [TRACE-007]: `_meta` decides, and the
    // context of the HTTP request is linked. Without the former, the latter is also the parent.
    let ambient = shared.propagators.ambient(operation.transport);
    let link = ambient.as_ref().map(|ambient| ambient.span().span_context().clone());
    let links = link.into_iter().map(Link::with_context).collect();
    let parent = match (carried, ambient) {
        (Some(carried), _) if has_span(&carried) => carried,
        // It may contain baggage.
        (Some(carried), Some(ambient)) => {
            carried.with_remote_span_context(ambient.span().span_context().clone())
        }
        (Some(carried), None) => carried,
        (None, Some(ambient)) => ambient,
        (None, None) => Context::new(),
    };
    (parent, links)
}

/// Returns the parent of an operation's `tracing` span.
fn parent_span(operation: &Operation<'_>) -> Span {
    use mcp_sansio::peer::Cause;

    let known = match operation.cause {
        Cause::Call(context) => context.get::<CallerContext>().map(|it| it.span.clone()),
        Cause::Request(request) => {
            let request: &dyn std::any::Any = request;
            let request = request.downcast_ref::<OperationSpan>();
            request.and_then(|it| it.tracing.as_ref()).map(TracingSpan::get)
        }
        _ => None,
    };
    known.unwrap_or_else(Span::current)
}

// MCP 2026-07-28 otel:spans.yaml#mcp.client [TRACE-037] [TRACE-038]
fn push_arguments(attributes: &mut Vec<KeyValue>, operation: &Operation<'_>) {
    let Some(arguments) = operation.params.get("arguments") else { return };
    match operation.known_method() {
        Some(Method::ToolsCall) => {
            let text = arguments.as_str().to_owned();
            attributes.push(KeyValue::new(attribute::TOOL_ARGUMENTS, text));
        }
        Some(Method::PromptsGet) => {
            for argument in arguments.members() {
                let name = format!("{}{}", attribute::PROMPT_VARIABLE, argument.name());
                attributes.push(KeyValue::new(name, text_of(&argument.value)));
            }
        }
        _ => {}
    }
}

fn text_of(value: &RawJson<'_>) -> String {
    value.to_text().map_or_else(|| value.as_str().to_owned(), |text| text.into_owned())
}

/// A legacy session in progress.
pub(crate) struct SessionTimer {
    shared: Arc<Shared>,
    role: Side,
    revision: mcp_sansio::Revision,
    transport: Transport,
    start: Instant,
    ended: AtomicBool,
}

impl SessionTimer {
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        role: Side,
        revision: mcp_sansio::Revision,
        transport: &OperationTransport,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            role,
            revision,
            transport: Transport::new(transport),
            start: now(),
            ended: AtomicBool::new(false),
        }
    }
}

impl Observation for SessionTimer {
    // MCP 2025-11-25 otel:metrics.yaml#mcp.client.session.duration [TRACE-043]
    fn end(&self, end: &OperationEnd<'_>) {
        if self.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let time = self.start.elapsed();
        let mut attributes = Vec::with_capacity(8);
        push_revision(&mut attributes, Some(self.revision));
        push_network(&mut attributes, &self.transport);
        let verdict = Verdict::new(&end.outcome, Direction::Sent);
        push_verdict(&mut attributes, &verdict);
        if self.role == Side::Client {
            let names = (attribute::SERVER_ADDRESS, attribute::SERVER_PORT);
            push_address(&mut attributes, names, &self.transport, &self.shared.options);
        }
        self.shared.metrics.session(self.role, time, &attributes);
    }
}

mcp_sansio::partial_debug! { impl Debug for SessionTimer { role, .. } }

// ------------------------------------------------------------------ tracing span

/// The span of an operation, until that ends.
#[derive(Debug)]
pub(crate) struct TracingSpan(Mutex<Option<Span>>);

/// Creates a span with all fields that it may have: `tracing` knows no others later. Those that are
/// known at the beginning are found in `$attributes`.
macro_rules! span {
    ($name:literal, $kind:literal, $parent:expr, $title:expr, $attributes:expr) => {{
        let (text, number) = (|name| attribute_text($attributes, name), |name| attribute_number($attributes, name));
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

fn attribute_text(attributes: &[KeyValue], name: &str) -> Option<String> {
    find(attributes, name).map(|value| value.as_str().into_owned())
}

fn attribute_number(attributes: &[KeyValue], name: &str) -> Option<i64> {
    match find(attributes, name)? {
        Value::I64(number) => Some(*number),
        _ => None,
    }
}

// ------------------------------------------------------------------ a line for each operation

pub(crate) fn write_access_log(
    span: &OperationSpan,
    end: &OperationEnd<'_>,
    verdict: &Verdict,
    time: Duration,
) {
    let description = span.description();
    let context = span.context().span().span_context().clone();
    let subject = match &description.subject {
        Subject::Tool(name) | Subject::Prompt(name) | Subject::Resource(name) => Some(&**name),
        Subject::None => None,
    };
    let revision = end.revision.or(description.revision);
    let options = &span.shared.options;
    let principal = description.principal.as_deref().filter(|_| options.principals);
    let address = description.transport.peer_address.as_deref().filter(|_| options.addresses);
    let trace_id = context.is_valid().then(|| context.trace_id().to_string());
    tracing::info!(
        target: "mcp_sansio::access",
        direction = if description.direction == Direction::Sent { "sent" } else { "received" },
        method = &*description.method,
        subject,
        request_id = description.request_id.as_deref(),
        revision = revision.map(mcp_sansio::Revision::as_str),
        transport = description.transport.protocol_name.unwrap_or("stream"),
        client_address = address,
        principal,
        code = verdict.code,
        error_type = verdict.error_type.as_deref(),
        cancelled = verdict.is_cancelled.then_some(true),
        duration_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
        trace_id,
    );
}
