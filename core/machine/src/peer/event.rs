use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::binding::TransportFailure;
use crate::catalog::Target;
use crate::framing::FrameError;
use crate::gate::GateError;
use crate::jsonrpc::{ErrorCode, ErrorObject, Omissions, RawJson, Reason, RequestId};
use crate::protocol::{Capabilities, Method, SubscriptionFilter};
use crate::{Caller, Era, Panicked, Printable, Revision};

use super::error::OpeningFailure;
use super::handle::{CallHandle, InputHandle, RequestHandle};
use super::method_name::MethodName;
use crate::gate::metadata::Spans;

/// An event for the application.
///
/// Each received message causes at most one event, which is returned by the call that handles the
/// message and borrows from it. `poll_event` returns all other events, as the same type.
/// [`Event::into_owned`] detaches an event from its frame, to send it to another task.
///
/// ```
/// use mcp_sansio::Instant;
/// use mcp_sansio::jsonrpc::ErrorObject;
/// use mcp_sansio::peer::{CommandError, Event, Server, ServerMachine};
/// use mcp_sansio::protocol::CallToolResult;
///
/// /// The application of a server with one tool.
/// fn on_event(
///     event: Event<'_>,
///     server: &mut Server,
///     now: Instant,
/// ) -> Result<(), CommandError> {
///     match event {
///         Event::Request(request) if request.method.as_str() == "tools/call" => {
///             server.respond(request.handle, &CallToolResult::text("about noon"), now)?;
///         }
///         Event::Request(request) => {
///             server.reject(request.handle, ErrorObject::internal("not implemented"), now)?;
///         }
///         Event::Cancelled(cancelled) => println!("cancelled: {:?}", cancelled.subject),
///         Event::Closed(reason) => println!("closed: {reason}"),
///         _ => {}
///     }
///     Ok(())
/// }
/// # let _ = on_event;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The connection is open; the machine's `session` returns the outcome of the negotiation.
    Opened(Opened),
    /// A request, to be answered with `respond`, `reject` or `require_input`.
    Request(Request<'a>),
    /// A notification that needs no answer.
    Notification(Notification<'a>),
    /// Progress of a call that asked for it.
    Progress(Progress<'a>),
    /// A call ended. Each call ends exactly once.
    Ended(Ended<'a>),
    /// The client's host received an input request, to be answered with `answer_input` or
    /// `refuse_input`.
    InputRequested(InputRequested<'a>),
    /// The peer cancelled a request or withdrew an input request. Stop processing it; no response
    /// is expected.
    Cancelled(Cancelled<'a>),
    /// The server acknowledged a subscription, with the part of the filter that it accepted.
    Subscribed(Subscribed),
    /// The peer violated the protocol. It received an error response if the protocol defines one.
    Violation(Violation),
    /// A notification or response could not be delivered. Only over HTTP.
    DeliveryFailed(DeliveryFailed),
    /// The event stream of a legacy server was lost for the rest of the session, or the server does
    /// not offer it: notifications that belong to no request do not arrive. Only over HTTP.
    EventStreamLost(TransportFailure),
    /// A handler of the application panicked. Machines run no handlers: the layer that does reports
    /// it to its observers.
    HandlerPanicked(HandlerPanicked),
    /// The connection is closed. This is the last event.
    Closed(CloseReason),
}

impl Event<'_> {
    /// Converts the event to one that does not borrow from the frame.
    #[must_use]
    pub fn into_owned(self) -> Event<'static> {
        match self {
            Self::Opened(opened) => Event::Opened(opened),
            Self::Request(request) => Event::Request(request.into_owned()),
            Self::Notification(notification) => Event::Notification(notification.into_owned()),
            Self::Progress(progress) => Event::Progress(progress.into_owned()),
            Self::Ended(ended) => Event::Ended(ended.into_owned()),
            Self::InputRequested(input) => Event::InputRequested(input.into_owned()),
            Self::Cancelled(cancelled) => Event::Cancelled(cancelled.into_owned()),
            Self::Subscribed(subscribed) => Event::Subscribed(subscribed),
            Self::Violation(violation) => Event::Violation(violation),
            Self::DeliveryFailed(failed) => Event::DeliveryFailed(failed),
            Self::EventStreamLost(failure) => Event::EventStreamLost(failure),
            Self::HandlerPanicked(panicked) => Event::HandlerPanicked(panicked),
            Self::Closed(reason) => Event::Closed(reason),
        }
    }
}

/// The connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// The revision in force. A server that serves both eras may also receive requests of another
    /// revision: each [`Request`] names its own.
    pub revision: Revision,
}

impl Opened {
    /// Returns the era of the revision.
    #[must_use]
    pub const fn era(self) -> Era {
        self.revision.era()
    }
}

/// A request of the peer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The handle to answer it with.
    pub handle: RequestHandle,
    /// The method.
    pub method: MethodName<'a>,
    /// The parameters, `{}` if absent. They still contain the members that the machine has already
    /// processed (`_meta`, input responses).
    pub params: RawJson<'a>,
    /// The revision that governs this request.
    pub revision: Revision,
    /// The capabilities of the peer, declared for this session or with this request.
    pub capabilities: Capabilities,
    /// Whether the peer asked for progress.
    pub wants_progress: bool,
    /// The responses to input requests of earlier rounds.
    pub inputs: InputResponseParams<'a>,
    /// The catalog entry that the request names.
    pub target: Target,
    /// The sender of the request.
    pub caller: Caller,
    pub(crate) spans: Spans,
}

impl<'a> Request<'a> {
    /// Returns a request without parameters, for a command that needs no more.
    pub(crate) fn without_content(handle: RequestHandle, method: MethodName<'a>) -> Self {
        Self {
            handle,
            method,
            params: RawJson::EMPTY_OBJECT,
            revision: Revision::LATEST,
            capabilities: Capabilities::NONE,
            wants_progress: false,
            inputs: InputResponseParams::default(),
            target: Target::None,
            spans: Spans::default(),
            caller: Caller::ANONYMOUS,
        }
    }
}

impl Request<'_> {
    /// Returns the subject of the request: the value of `name`, `uri`, `taskId` or `ref`, depending
    /// on the method. All earlier checks used the same value.
    #[must_use]
    pub fn subject(&self) -> Option<RawJson<'_>> {
        self.spans.subject(self.params.view()).map(RawJson::from)
    }

    /// Returns the value of `arguments`, an object for methods that have arguments.
    #[must_use]
    pub fn arguments(&self) -> Option<RawJson<'_>> {
        self.spans.arguments(self.params.view()).map(RawJson::from)
    }

    /// Drops the parameters, including the subject and the arguments.
    pub fn clear_params(&mut self) {
        (self.params, self.spans) = (RawJson::EMPTY_OBJECT, Spans::default());
    }

    /// Converts the request to one that does not borrow from the frame.
    #[must_use]
    pub fn into_owned(self) -> Request<'static> {
        Request {
            handle: self.handle,
            method: self.method.into_owned(),
            params: self.params.into_owned(),
            revision: self.revision,
            capabilities: self.capabilities,
            wants_progress: self.wants_progress,
            inputs: self.inputs.into_owned(),
            target: self.target,
            spans: self.spans,
            caller: self.caller,
        }
    }
}

/// The input from earlier rounds of a request, the same in both eras.
#[derive(Clone, Debug, Default)]
pub struct InputResponseParams<'a> {
    pub(crate) responses: Option<RawJson<'a>>,
    pub(crate) state: Option<Cow<'a, str>>,
    /// Input requests that a legacy client answered with an error.
    pub(crate) refused: Option<Box<[(String, ErrorObject<'static>)]>>,
}

impl<'a> InputResponseParams<'a> {
    /// Creates input that a higher layer obtained on its own: the `responses`, an object with the
    /// keys of the input requests, and the `state` of the round.
    #[must_use]
    pub fn new(responses: Option<RawJson<'a>>, state: Option<String>) -> Self {
        Self { responses, state: state.map(Cow::Owned), refused: None }
    }

    /// Returns the result for the input request `key`.
    #[must_use]
    pub fn response(&self, key: &str) -> Option<RawJson<'_>> {
        self.responses.as_ref()?.get(key)
    }

    /// Returns all results, an object with the keys of the input requests, or `None` in the first
    /// round.
    #[must_use]
    pub const fn responses(&self) -> Option<&RawJson<'_>> {
        self.responses.as_ref()
    }

    /// Returns the error with which a legacy client answered the input request `key`. A modern
    /// client that refuses input does not send the request again.
    #[must_use]
    pub fn refusal(&self, key: &str) -> Option<&ErrorObject<'static>> {
        let refused = self.refused.as_deref()?;
        refused.iter().find(|(name, _)| name == key).map(|(_, error)| error)
    }

    /// Returns the state that the server attached to the earlier round, as the client returned it.
    ///
    /// From a modern client this value is untrusted until it is verified.
    // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006]
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Replaces the state, for a higher layer that seals it or stores it locally.
    pub fn set_state(&mut self, state: Option<String>) {
        self.state = state.map(Cow::Owned);
    }

    /// Returns whether this is the first round.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.responses.is_none() && self.state.is_none() && self.refused.is_none()
    }

    /// Converts the input to a value that does not borrow from the frame.
    #[must_use]
    pub fn into_owned(self) -> InputResponseParams<'static> {
        InputResponseParams {
            responses: self.responses.map(RawJson::into_owned),
            state: self.state.map(|state| Cow::Owned(state.into_owned())),
            refused: self.refused,
        }
    }
}

/// A notification of the peer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification<'a> {
    /// The method.
    pub method: MethodName<'a>,
    /// The parameters, `{}` if absent.
    pub params: RawJson<'a>,
    /// The revision that governs it.
    pub revision: Revision,
    /// The subscriptions of this side that the notification belongs to, in the order in which they
    /// were made. A legacy server sends each change once, however many subscriptions include it.
    pub subscriptions: Box<[CallHandle]>,
}

impl Notification<'_> {
    fn into_owned(self) -> Notification<'static> {
        Notification {
            method: self.method.into_owned(),
            params: self.params.into_owned(),
            revision: self.revision,
            subscriptions: self.subscriptions,
        }
    }
}

/// Progress of a call. `progress` increases with each event of a round.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The call.
    pub call: CallHandle,
    /// The progress so far, in units that the server chooses.
    pub progress: f64,
    /// The final value, if known.
    pub total: Option<f64>,
    /// A message for people.
    pub message: Option<Cow<'a, str>>,
}

impl Progress<'_> {
    fn into_owned(self) -> Progress<'static> {
        Progress {
            call: self.call,
            progress: self.progress,
            total: self.total,
            message: self.message.map(|message| Cow::Owned(message.into_owned())),
        }
    }
}

/// A call ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ended<'a> {
    /// The call. Its handle is stale from now on.
    pub call: CallHandle,
    /// The result, an object, or the failure.
    pub outcome: Result<RawJson<'a>, Failure<'a>>,
    /// How many times a modern server asked for input, or for the call to be sent again with its
    /// state, before the result. Zero for a failure.
    pub input_rounds: u32,
}

impl<'a> Ended<'a> {
    /// Creates the end of a call without input rounds.
    pub(crate) const fn new(call: CallHandle, outcome: Result<RawJson<'a>, Failure<'a>>) -> Self {
        Self { call, outcome, input_rounds: 0 }
    }

    fn into_owned(self) -> Ended<'static> {
        Ended {
            call: self.call,
            outcome: match self.outcome {
                Ok(result) => Ok(result.into_owned()),
                Err(failure) => Err(failure.into_owned()),
            },
            input_rounds: self.input_rounds,
        }
    }
}

/// Why a call has no result, and which side caused it.
// MCP 2026-07-28 basic/index#error-codes [RPC-029]: local failures are never reported as errors of
// the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure<'a> {
    /// The peer answered with an error.
    #[error("{0}")]
    Refused(ErrorObject<'a>),
    /// The peer's response is not valid for this call.
    #[error("the answer is not valid: {0}")]
    InvalidAnswer(&'static str),
    /// The response did not arrive in time; a cancellation was sent.
    #[error("{}", DisplayTimedOut(*.hard))]
    TimedOut {
        /// Whether the hard deadline passed, which progress does not extend.
        hard: bool,
    },
    /// This side cancelled the call or ended the subscription.
    #[error("cancelled")]
    Cancelled,
    /// The server asked for input in more rounds than the limit allows.
    #[error("the server asked for input in more than {limit} rounds")]
    TooManyRounds {
        /// [`Limits::rounds_max`](crate::peer::Limits::rounds_max).
        limit: u32,
    },
    /// The server asked for input, but the data to store for the call exceeds the limit.
    #[error("the input of the call exceeds {limit} bytes")]
    TooMuchInput {
        /// [`Limits::input_bytes_max`](crate::peer::Limits::input_bytes_max).
        limit: usize,
    },
    /// The host refused input that the call needs.
    #[error("the host refused the input `{key}`: {error}")]
    InputRefused {
        /// The server's key for the input request.
        key: String,
        /// The host's error.
        error: ErrorObject<'static>,
    },
    /// The connection was closed before the response arrived.
    #[error("the connection ended before the answer")]
    ConnectionLost,
    /// The transport of this call failed; other calls may still succeed.
    #[error(transparent)]
    Transport(TransportFailure),
}

/// Says which time has passed, and what to do for a slower peer.
struct DisplayTimedOut(bool);

impl fmt::Display for DisplayTimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            true => "no answer within the total time of the call; raise its `timeout_hard`",
            false => "no answer and no progress in time; raise the `timeout` of the call",
        })
    }
}

impl Failure<'_> {
    /// Returns whether the call was executed: `Some(true)` if the peer says so, `Some(false)` if it
    /// certainly was not, so that it can be sent again without doing anything twice, and `None` if
    /// that is unknown.
    ///
    /// | Failure | Result |
    /// | --- | --- |
    /// | [`Refused`](Self::Refused) because of the request itself: `-32700`, `-32600`, `-32601`, `-32602`, `-32002`, and `-32020` to `-32022` of 2026-07-28 | `Some(false)` |
    /// | `Refused` with `-32603`, as after a panic or the failure of a node, or another code of `-32000` to `-32099`, such as the timeouts of other implementations | `None` |
    /// | `Refused` with any other code, which is the application's | `Some(true)` |
    /// | [`InvalidAnswer`](Self::InvalidAnswer) | `Some(true)` |
    /// | [`Transport`](Self::Transport) | [`TransportFailure::executed`] |
    /// | any other, which may have ended the call halfway | `None` |
    #[must_use]
    pub const fn executed(&self) -> Option<bool> {
        match self {
            Self::Refused(error) => match error.code {
                ErrorCode::PARSE_ERROR
                | ErrorCode::INVALID_REQUEST
                | ErrorCode::METHOD_NOT_FOUND
                | ErrorCode::INVALID_PARAMS
                | ErrorCode::RESOURCE_NOT_FOUND
                | ErrorCode::HEADER_MISMATCH
                | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
                | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => Some(false),
                ErrorCode::INTERNAL_ERROR | ErrorCode(-32099..=-32000) => None,
                _ => Some(true),
            },
            Self::InvalidAnswer(_) => Some(true),
            Self::Transport(failure) => failure.executed(),
            Self::TimedOut { .. }
            | Self::Cancelled
            | Self::TooManyRounds { .. }
            | Self::TooMuchInput { .. }
            | Self::InputRefused { .. }
            | Self::ConnectionLost => None,
        }
    }

    /// Returns how long to wait before the call is sent again, if the server has said so.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Transport(failure) => failure.retry_after(),
            _ => None,
        }
    }

    /// Converts the failure to one that does not borrow from the frame.
    #[must_use]
    pub fn into_owned(self) -> Failure<'static> {
        match self {
            Self::Refused(error) => Failure::Refused(error.into_owned()),
            Self::InvalidAnswer(why) => Failure::InvalidAnswer(why),
            Self::TimedOut { hard } => Failure::TimedOut { hard },
            Self::Cancelled => Failure::Cancelled,
            Self::TooManyRounds { limit } => Failure::TooManyRounds { limit },
            Self::TooMuchInput { limit } => Failure::TooMuchInput { limit },
            Self::InputRefused { key, error } => Failure::InputRefused { key, error },
            Self::ConnectionLost => Failure::ConnectionLost,
            Self::Transport(failure) => Failure::Transport(failure),
        }
    }
}

/// An input request to the host: for a model response, a user response, or its roots.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputRequested<'a> {
    /// The handle to answer it with.
    pub handle: InputHandle,
    /// `sampling/createMessage`, `elicitation/create` or `roots/list`.
    pub method: Method,
    /// The parameters of that method, `{}` if absent.
    pub params: RawJson<'a>,
    /// The revision that governs it.
    pub revision: Revision,
    /// The call that caused the input request, if the revision identifies it.
    pub call: Option<CallHandle>,
}

impl InputRequested<'_> {
    fn into_owned(self) -> InputRequested<'static> {
        InputRequested {
            handle: self.handle,
            method: self.method,
            params: self.params.into_owned(),
            revision: self.revision,
            call: self.call,
        }
    }
}

/// The peer cancelled a request or withdrew an input request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cancelled<'a> {
    /// The cancelled request.
    pub subject: Subject,
    /// The peer's reason, for logs.
    // MCP 2026-07-28 basic/patterns/cancellation#implementation-notes [CANC-008]
    pub reason: Option<Cow<'a, str>>,
}

/// The subject of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A request that the application was processing.
    Request(RequestHandle),
    /// An input request to the host.
    Input(InputHandle),
}

impl Cancelled<'_> {
    fn into_owned(self) -> Cancelled<'static> {
        Cancelled {
            subject: self.subject,
            reason: self.reason.map(|reason| Cow::Owned(reason.into_owned())),
        }
    }
}

/// A subscription is active. Reported again if a session on HTTP was replaced and the new one
/// accepts less.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Subscribed {
    /// The subscription.
    pub subscription: CallHandle,
    /// The part of the filter that the server accepted.
    // MCP 2026-07-28 basic/patterns/subscriptions#acknowledgment [SUBS-005]
    pub honoured: SubscriptionFilter,
    /// The first error with which a legacy server refused a resource of the filter: its code and the
    /// start of its message, see [`TransportFailure::excerpt`]. A modern server gives no reasons.
    pub refusal: Option<ErrorObject<'static>>,
}

/// A protocol violation of the peer, for logs and for policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A frame is not a valid message.
    #[error("malformed message: {0}")]
    Malformed(Reason),
    /// A line of a server is not a message. Usually it has printed to its standard output.
    #[error("malformed message: {reason}, in the line `{line}`")]
    NotAMessage {
        /// The defect.
        reason: Reason,
        /// The start of the line: see [`TransportFailure::excerpt`].
        line: Box<str>,
    },
    /// A frame exceeds the decoder's limit and was skipped.
    #[error("{}", FrameError::TooLong { limit: *limit })]
    FrameTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The input ended within a frame.
    #[error("{}", FrameError::Truncated { length: *length })]
    FrameCutShort {
        /// Number of bytes that were received.
        length: usize,
    },
    /// A request uses the id of a request in flight.
    #[error("request id {0} is in use")]
    DuplicateId(RequestId),
    /// More requests are in flight than the limit allows; this one was refused.
    #[error("more requests in flight than this side accepts")]
    TooManyRequests,
    /// A response matches no request.
    #[error("a response to a request that is not in flight")]
    UnknownResponse(Option<RequestId>),
    /// An error names no request, usually because the peer could not read one. Contains its start:
    /// see [`TransportFailure::excerpt`].
    #[error("an error that names no request: {0}")]
    UnaddressedError(Box<str>),
    /// The revision, the direction or a missing capability forbids a message.
    #[error("{0}")]
    Forbidden(#[from] GateError),
    /// A message is not allowed at this point.
    #[error("{0}")]
    OutOfPlace(&'static str),
    /// Parameters are invalid for the method.
    #[error("`{method}`: {what}")]
    BadParameters {
        /// The method.
        method: Method,
        /// The defect.
        what: &'static str,
    },
    /// The HTTP header annotations of a tool are invalid; the tool was removed from the list.
    // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-017]
    #[error("the tool `{tool}` is left out of the list: {reason}")]
    ToolExcluded {
        /// The tool.
        tool: String,
        /// The defect of its definition.
        reason: String,
    },
    /// Elements of lists or hints in a result are malformed, or pages of a list do not end, and were
    /// left out when it was decoded. The machine does not decode results: the application or the
    /// layer that decodes them reports it.
    #[error("parts of a result are malformed and were left out: {0}")]
    ElementsOmitted(Omissions),
}

/// A notification or response could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliveryFailed {
    /// The method of the notification, or `None` for a response.
    pub method: Option<Method>,
    /// The reason.
    pub failure: TransportFailure,
}

impl fmt::Display for DeliveryFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.method.map_or("response", Method::as_str);
        write!(f, "`{what}` could not be delivered: {}", self.failure)
    }
}

/// A handler of the application panicked, and its request was answered with an internal error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerPanicked {
    /// The handler: the kind and the name of its item, or its method.
    pub handler: String,
    /// The panic, whose text the peer does not get.
    pub panicked: Panicked,
}

impl HandlerPanicked {
    /// Creates the report of a panic. `handler` names the handler, such as "tool `forecast`".
    #[must_use]
    pub const fn new(handler: String, panicked: Panicked) -> Self {
        Self { handler, panicked }
    }

    /// Returns the error for the peer, without the text of the panic.
    #[must_use]
    pub fn to_error(&self) -> ErrorObject<'static> {
        ErrorObject::internal(alloc::format!("the handler of {} panicked", self.handler))
    }
}

impl fmt::Display for HandlerPanicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A panic may quote the peer.
        let text = Printable::new(self.panicked.text());
        write!(f, "the handler of {} panicked: {text}", self.handler)
    }
}

/// Why a connection is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    #[error("closed by this side")]
    Local,
    /// The peer closed its output.
    #[error("the other side closed the connection")]
    EndOfInput,
    /// The peer violated the protocol and the policy closes the connection.
    #[error("closed because of a violation: {0}")]
    Violation(Violation),
    /// The peer did not answer keep-alive pings.
    // MCP 2025-11-25 basic/utilities/ping#error-handling [PING-004]
    #[error("the other side does not answer pings")]
    Unresponsive,
    /// The client and the server could not agree on a revision, or the opening failed.
    #[error("could not open the connection: {0}")]
    OpeningFailed(OpeningFailure),
    /// The transport of the whole connection failed.
    #[error(transparent)]
    Transport(TransportFailure),
}

/// The input requests of one round, by key.
pub(crate) type Keyed<T> = Vec<(String, T)>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_of_reasonable_size() {
        assert!(size_of::<Event<'_>>() <= 320, "{}", size_of::<Event<'_>>());
    }

    #[test]
    fn only_what_certainly_did_not_run_is_not_executed() {
        let refused = |code| Failure::Refused(ErrorObject::new(ErrorCode(code), "no"));
        for code in [-32700, -32600, -32601, -32602, -32002, -32020, -32021, -32022] {
            assert_eq!(refused(code).executed(), Some(false), "{code}");
        }
        // A handler that panicked, or whose node failed, may have done anything before.
        for code in [-32603, -32000, -32001, -32042, -32099] {
            assert_eq!(refused(code).executed(), None, "{code}");
        }
        for code in [-1, 0, 404, -31999] {
            assert_eq!(refused(code).executed(), Some(true), "{code}");
        }
        let error = ErrorObject::new(ErrorCode(-1), "no");
        for (failure, expected) in [
            (Failure::InvalidAnswer("no"), Some(true)),
            (Failure::TimedOut { hard: false }, None),
            (Failure::TimedOut { hard: true }, None),
            (Failure::Cancelled, None),
            (Failure::TooManyRounds { limit: 1 }, None),
            (Failure::TooMuchInput { limit: 1 }, None),
            (Failure::InputRefused { key: "k".into(), error }, None),
            (Failure::ConnectionLost, None),
            (Failure::Transport(TransportFailure::NotSent), Some(false)),
            (Failure::Transport(TransportFailure::Broken), None),
        ] {
            assert_eq!(failure.executed(), expected, "{failure}");
        }
    }
}
