//! The attributes of an operation.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;

use mcp_sansio::gate::SubjectKind;
use mcp_sansio::jsonrpc::{ErrorObject, RawJson, RequestId};
use mcp_sansio::peer::{
    CloseReason, Direction, Failure, Operation, OperationOutcome, OperationTransport,
    TransportFailure,
};
use mcp_sansio::{ErrorCode, Method, Revision};
use opentelemetry::KeyValue;

use crate::attribute::{self, OTHER};
use crate::telemetry::Options;

/// The longest method that is reported, in bytes. Peers may send any text.
const METHOD_LENGTH_MAX: usize = 256;

/// The properties of an operation that spans, metrics and the log report.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) direction: Direction,
    pub(crate) method: Cow<'static, str>,
    /// Whether the protocol defines the method.
    pub(crate) is_known: bool,
    pub(crate) subject: Subject,
    pub(crate) request_id: Option<Arc<str>>,
    pub(crate) revision: Option<Revision>,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) transport: Transport,
}

/// What spans, metrics and the log report of a connection.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) protocol_name: Option<&'static str>,
    protocol_version: Option<&'static str>,
    pub(crate) session_id: Option<Arc<str>>,
    pub(crate) peer_address: Option<Arc<str>>,
    peer_port: Option<u16>,
}

impl Transport {
    pub(crate) fn new(transport: &OperationTransport) -> Self {
        let shared = |text: &Option<String>| text.as_deref().map(Arc::from);
        Self {
            protocol_name: transport.protocol_name,
            protocol_version: transport.protocol_version,
            session_id: shared(&transport.session_id),
            peer_address: shared(&transport.peer_address),
            peer_port: transport.peer_port,
        }
    }
}

impl Description {
    pub(crate) fn new(operation: &Operation<'_>) -> Self {
        let known = operation.known_method();
        Self {
            direction: operation.direction,
            method: match (known, operation.method) {
                (Some(known), _) => known.as_str().into(),
                // HTTP has refused it by its head.
                (None, "") => OTHER.into(),
                (None, method) => truncated(method, METHOD_LENGTH_MAX).to_owned().into(),
            },
            is_known: known.is_some(),
            subject: Subject::new(known, operation.params),
            // MCP 2026-07-28 otel:spans.yaml#trace.mcp.common.attributes [TRACE-017]
            // MCP 2026-07-28 otel:mcp#client [TRACE-018]: notifications have no id.
            request_id: operation.id.map(|id| match id {
                RequestId::Number(number) => itoa::Buffer::new().format(*number).into(),
                RequestId::Text(text) => (**text).into(),
            }),
            revision: operation.revision,
            principal: operation
                .caller
                .and_then(|caller| caller.principal())
                .map(|principal| principal.as_str().into()),
            transport: Transport::new(operation.transport),
        }
    }

    pub(crate) fn is_tool_call(&self) -> bool {
        self.method == Method::ToolsCall.as_str()
    }

    /// Whether the method may be any text that the peer has sent. Such a text is not in names and
    /// metrics, which must not grow with it. `verdict` is that of a request that was answered: with
    /// a result or an error of its handler the method is one of an extension.
    pub(crate) fn is_foreign(&self, verdict: Option<&Verdict>) -> bool {
        let is_served = verdict.is_some_and(|verdict| {
            self.request_id.is_some() && !verdict.code.is_some_and(is_fault_of_the_sender)
        });
        self.direction == Direction::Received && !self.is_known && !is_served
    }

    /// Returns the name of the method without texts that only the peer has chosen.
    fn bounded_method(&self, verdict: Option<&Verdict>) -> Cow<'static, str> {
        if self.is_foreign(verdict) { OTHER.into() } else { self.method.clone() }
    }

    /// Returns the name of the span.
    // MCP 2026-07-28 otel:mcp#client [TRACE-009] [TRACE-010] [TRACE-011] [TRACE-012]
    pub(crate) fn name(&self, verdict: Option<&Verdict>, options: &Options) -> Cow<'static, str> {
        let method = self.bounded_method(verdict);
        match &self.subject {
            Subject::Tool(name) | Subject::Prompt(name) => [&method, " ", name].concat().into(),
            Subject::Resource(uri) if options.uris_in_names => [&method, " ", uri].concat().into(),
            Subject::Resource(_) | Subject::None => method,
        }
    }

    /// Returns the attributes of the span that are known at its beginning.
    pub(crate) fn of_span(&self, options: &Options) -> Vec<KeyValue> {
        let mut all = Vec::with_capacity(16);
        // MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-013]
        all.push(KeyValue::new(attribute::METHOD_NAME, self.method.clone()));
        if let Some(id) = &self.request_id {
            all.push(KeyValue::new(attribute::REQUEST_ID, id.clone()));
        }
        self.push_item(&mut all);
        // MCP 2026-07-28 otel:spans.yaml#trace.mcp.common.attributes [TRACE-019]
        if let Subject::Resource(uri) = &self.subject {
            all.push(KeyValue::new(attribute::RESOURCE_URI, uri.clone()));
        }
        push_revision(&mut all, self.revision);
        // MCP 2025-11-25 otel:spans.yaml#trace.mcp.common.attributes [TRACE-031]
        if let Some(id) = self.transport.session_id.as_ref().filter(|_| options.session_ids) {
            all.push(KeyValue::new(attribute::SESSION_ID, id.clone()));
        }
        push_network(&mut all, &self.transport);
        self.push_address(&mut all, options);
        all
    }

    /// Returns the attributes of the metric, at the end of the operation.
    // MCP 2026-07-28 otel:metrics.yaml#mcp.operation.metrics.attributes [TRACE-045]: ids are not
    // among them.
    pub(crate) fn of_metric(
        &self,
        (verdict, is_answered, has_run): (&Verdict, bool, bool),
        revision: Option<Revision>,
        options: &Options,
    ) -> Vec<KeyValue> {
        let answered = is_answered.then_some(verdict);
        let mut all = Vec::with_capacity(12);
        // MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-013]
        all.push(KeyValue::new(attribute::METHOD_NAME, self.bounded_method(answered)));
        // Until a request has reached its handler, the item that it names is any text of the peer.
        // The receiver may also say that there is no such item: a model can make up names.
        let is_known = (self.direction == Direction::Sent || has_run)
            && !verdict.code.is_some_and(is_fault_of_the_sender);
        if is_known {
            self.push_item(&mut all);
        }
        if let Subject::Resource(uri) = &self.subject
            && options.uris_in_metrics
            && is_known
        {
            all.push(KeyValue::new(attribute::RESOURCE_URI, uri.clone()));
        }
        // A peer may choose another code for each answer.
        let is_chosen = self.direction == Direction::Sent
            && verdict.code.is_some_and(|code| !RESERVED_CODES.contains(&code));
        if is_chosen {
            all.push(KeyValue::new(attribute::STATUS_CODE, OTHER));
            all.push(KeyValue::new(attribute::ERROR_TYPE, OTHER));
        } else {
            push_verdict(&mut all, verdict);
        }
        push_revision(&mut all, revision.or(self.revision));
        push_network(&mut all, &self.transport);
        if self.direction == Direction::Sent {
            self.push_address(&mut all, options);
        }
        all
    }

    // MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-014] [TRACE-015] [TRACE-016]
    fn push_item(&self, all: &mut Vec<KeyValue>) {
        match &self.subject {
            Subject::Tool(name) => all.push(KeyValue::new(attribute::TOOL_NAME, name.clone())),
            Subject::Prompt(name) => all.push(KeyValue::new(attribute::PROMPT_NAME, name.clone())),
            Subject::Resource(_) | Subject::None => {}
        }
        if self.is_tool_call() {
            all.push(KeyValue::new(attribute::OPERATION_NAME, attribute::EXECUTE_TOOL));
        }
    }

    // MCP 2026-07-28 otel:common.yaml#mcp.client.address_and_port.attributes [TRACE-035]
    // MCP 2026-07-28 otel:spans.yaml#mcp.server [TRACE-036]
    fn push_address(&self, all: &mut Vec<KeyValue>, options: &Options) {
        let names = match self.direction {
            Direction::Sent => (attribute::SERVER_ADDRESS, attribute::SERVER_PORT),
            _ => (attribute::CLIENT_ADDRESS, attribute::CLIENT_PORT),
        };
        push_address(all, names, &self.transport, options);
    }
}

/// Adds the address of the other side, and its port, under these names.
pub(crate) fn push_address(
    all: &mut Vec<KeyValue>,
    (address, port): (&'static str, &'static str),
    transport: &Transport,
    options: &Options,
) {
    if let Some(known) = transport.peer_address.as_ref().filter(|_| options.addresses) {
        all.push(KeyValue::new(address, Arc::clone(known)));
        if let Some(known) = transport.peer_port {
            all.push(KeyValue::new(port, i64::from(known)));
        }
    }
}

// MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-030]
pub(crate) fn push_revision(all: &mut Vec<KeyValue>, revision: Option<Revision>) {
    if let Some(revision) = revision {
        all.push(KeyValue::new(attribute::PROTOCOL_VERSION, revision.as_str()));
    }
}

// MCP 2026-07-28 otel:common.yaml#mcp.network.protocol.attributes [TRACE-032] [TRACE-033]
// MCP 2026-07-28 otel:common.yaml#mcp.network.protocol.attributes [TRACE-034]: the version of
// JSON-RPC is always 2.0 here.
pub(crate) fn push_network(all: &mut Vec<KeyValue>, transport: &Transport) {
    let Some(name) = transport.protocol_name else {
        all.push(KeyValue::new(attribute::NETWORK_TRANSPORT, "pipe"));
        return;
    };
    let is_quic = transport.protocol_version == Some("3");
    all.push(KeyValue::new(attribute::NETWORK_TRANSPORT, if is_quic { "quic" } else { "tcp" }));
    all.push(KeyValue::new(attribute::NETWORK_PROTOCOL_NAME, name));
    if let Some(version) = transport.protocol_version {
        all.push(KeyValue::new(attribute::NETWORK_PROTOCOL_VERSION, version));
    }
}

// MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-021]
// MCP 2026-07-28 otel:conventions#failure [TRACE-046]: the same on spans and metrics.
pub(crate) fn push_verdict(all: &mut Vec<KeyValue>, verdict: &Verdict) {
    if let Some(code) = verdict.code {
        all.push(KeyValue::new(attribute::STATUS_CODE, code.to_string()));
    }
    if let Some(error_type) = &verdict.error_type {
        all.push(KeyValue::new(attribute::ERROR_TYPE, error_type.clone()));
    }
}

// ------------------------------------------------------------------ the items of the protocol that operations name

/// The longest name of a tool or a prompt that is reported, in bytes. Names come from the peer.
const NAME_LENGTH_MAX: usize = 256;

/// The longest URI that is reported, in bytes.
const URI_LENGTH_MAX: usize = 2048;

/// The item that an operation names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Subject {
    #[default]
    None,
    Tool(Arc<str>),
    Prompt(Arc<str>),
    Resource(Arc<str>),
}

impl Subject {
    pub(crate) fn new(method: Option<Method>, params: &RawJson<'_>) -> Self {
        let found = method.and_then(Method::subject).and_then(|subject| subject.find(params));
        match found {
            Some((SubjectKind::Tool, name)) => Self::Tool(shared(&name, NAME_LENGTH_MAX)),
            Some((SubjectKind::Prompt, name)) => Self::Prompt(shared(&name, NAME_LENGTH_MAX)),
            Some((SubjectKind::Resource, uri)) => Self::Resource(shared(&uri, URI_LENGTH_MAX)),
            _ => Self::None,
        }
    }
}

fn shared(text: &str, length_max: usize) -> Arc<str> {
    truncated(text, length_max).into()
}

pub(crate) fn truncated(text: &str, length_max: usize) -> &str {
    let mut end = text.len().min(length_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

// ------------------------------------------------------------------ outcomes that are failures, and their names

/// The longest message of an error that is reported, in bytes. It comes from the peer.
const MESSAGE_LENGTH_MAX: usize = 1024;

/// The outcome of an operation, as spans and metrics report it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The code of a JSON-RPC error.
    pub(crate) code: Option<i64>,
    /// The class of a failure, if it is one.
    pub(crate) error_type: Option<Cow<'static, str>>,
    /// The message of a JSON-RPC error.
    pub(crate) message: Option<String>,
    /// Whether the sender of a received request does not want the response any more.
    pub(crate) is_cancelled: bool,
}

/// Errors with which a receiver tells a sender that the request cannot be served.
// MCP 2026-07-28 otel:common.yaml#mcp.server.status.attributes [TRACE-026]
const FAULTS_OF_THE_SENDER: [i64; 5] = [-32700, -32600, -32601, -32602, -32002];

/// The codes that JSON-RPC reserves for itself and for protocols such as MCP.
const RESERVED_CODES: RangeInclusive<i64> = -32768..=-32000;

/// Returns whether a code says that the receiver cannot serve the request, and does not count as
/// its failure.
pub(crate) fn is_fault_of_the_sender(code: i64) -> bool {
    FAULTS_OF_THE_SENDER.contains(&code)
}

impl Verdict {
    pub(crate) fn new(outcome: &OperationOutcome<'_>, direction: Direction) -> Self {
        match outcome {
            // MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-023]
            OperationOutcome::ToolFailed => Self::failure("tool_error"),
            OperationOutcome::Error(error) => Self::error(error, direction),
            OperationOutcome::Failed(failure) => Self::failed(failure, direction),
            OperationOutcome::Refused { status, error } => {
                let mut verdict = match error {
                    Some(error) => Self::error(error, direction),
                    None => Self::default(),
                };
                // The receiver could not handle it, whatever the error in the body says.
                if *status >= 500 && verdict.error_type.is_none() {
                    verdict.error_type = Some(status.to_string().into());
                }
                verdict
            }
            // MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-024]
            OperationOutcome::Closed(reason) => Self::failure(match reason {
                CloseReason::Violation(_) => "protocol_violation",
                CloseReason::Unresponsive => "unresponsive",
                CloseReason::OpeningFailed(_) => "opening_failed",
                CloseReason::Transport(failure) => return Self::failed_transport(failure),
                _ => OTHER,
            }),
            // The receiver has not failed.
            OperationOutcome::Cancelled => Self { is_cancelled: true, ..Self::default() },
            // The sender has violated the protocol.
            OperationOutcome::Done | OperationOutcome::Violation => Self::default(),
            _ => Self::failure(OTHER),
        }
    }

    fn failure(class: &'static str) -> Self {
        Self { error_type: Some(class.into()), ..Self::default() }
    }

    // MCP 2026-07-28 otel:common.yaml#mcp.client.status.attributes [TRACE-020] [TRACE-025]
    // MCP 2026-07-28 otel:common.yaml#mcp.server.status.attributes [TRACE-027]
    fn error(error: &ErrorObject<'_>, direction: Direction) -> Self {
        let ErrorCode(code) = error.code;
        let fails = direction == Direction::Sent || !is_fault_of_the_sender(code);
        Self {
            code: Some(code),
            // MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-022]
            error_type: fails.then(|| code.to_string().into()),
            message: Some(truncated(&error.message, MESSAGE_LENGTH_MAX).into()),
            is_cancelled: false,
        }
    }

    // MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-024]
    fn failed(failure: &Failure<'_>, direction: Direction) -> Self {
        Self::failure(match failure {
            Failure::Refused(error) => return Self::error(error, direction),
            Failure::Transport(failure) => return Self::failed_transport(failure),
            Failure::InvalidAnswer(_) => "invalid_response",
            Failure::TimedOut { .. } => "timeout",
            Failure::Cancelled => "cancelled",
            Failure::TooManyRounds { .. } => "too_many_rounds",
            Failure::TooMuchInput { .. } => "too_much_input",
            Failure::InputRefused { .. } => "input_refused",
            Failure::ConnectionLost => "connection_lost",
            _ => OTHER,
        })
    }

    fn failed_transport(failure: &TransportFailure) -> Self {
        Self::failure(match failure {
            TransportFailure::Status { status, .. }
            | TransportFailure::Unauthorized { status, .. }
            | TransportFailure::NotResumed { status, .. } => {
                return Self { error_type: Some(status.to_string().into()), ..Self::default() };
            }
            TransportFailure::NotSent => "unreachable",
            TransportFailure::Broken
            | TransportFailure::StreamEnded
            | TransportFailure::StreamLost { .. } => "connection_lost",
            TransportFailure::SessionLost => "session_lost",
            TransportFailure::AuthorizationFailed { .. } => "authorization_failed",
            TransportFailure::Redirected { .. } => "redirected",
            TransportFailure::InvalidResponse(_) | TransportFailure::TooLong { .. } => {
                "invalid_response"
            }
            _ => OTHER,
        })
    }
}
