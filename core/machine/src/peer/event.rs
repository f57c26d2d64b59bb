use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::binding::TransportFailure;
use crate::catalog::Target;
use crate::jsonrpc::{ErrorObject, Json, RawJson, Reason, RequestId};
use crate::protocol::{Capabilities, GateError, Method, SubscriptionFilter};
use crate::{Era, Revision};

use super::attachment::Attachment;
use super::handle::{CallHandle, InputHandle, RequestHandle};
use super::metadata::Places;
use super::method_name::MethodName;

/// What happened, in the words of the application.
///
/// A message that comes in makes at most one event, returned by the call that takes the message
/// and borrowing from it; what the machine makes by itself comes from `poll_event`, as the same
/// type. [`Event::into_owned`] frees an event from its frame, to hand it to another task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The connection is ready for use; see the machine's `session` for what was agreed.
    Opened(Opened),
    /// A request to answer with `respond`, `reject` or `require_input`.
    Request(Request<'a>),
    /// A notification that needs no answer.
    Notification(Notification<'a>),
    /// Progress of a call that asked for it.
    Progress(Progress<'a>),
    /// A call ended. Every call does so exactly once.
    Ended(Ended<'a>),
    /// A client's host is asked for something; answer with `answer_input` or `refuse_input`.
    InputRequested(InputRequested<'a>),
    /// The other side gave up a request, or a question of it: stop working on it, no answer is
    /// due.
    Cancelled(Cancelled<'a>),
    /// A subscription was acknowledged, with what of it the server honours.
    Subscribed(Subscribed),
    /// The other side broke a rule and was answered where the protocol has an answer.
    Violation(Violation),
    /// The connection is over. The last event.
    Closed(CloseReason),
}

impl Event<'_> {
    /// The same event, free of the frame's lifetime.
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
            Self::Closed(reason) => Event::Closed(reason),
        }
    }
}

/// The connection is ready for use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// The revision in force. A server that serves both eras may see requests of another one
    /// beside it: each [`Request`] says its own.
    pub revision: Revision,
}

impl Opened {
    /// The era of the revision.
    #[must_use]
    pub const fn era(self) -> Era {
        self.revision.era()
    }
}

/// A request of the other side.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// What to answer it by.
    pub handle: RequestHandle,
    /// The method.
    pub method: MethodName<'a>,
    /// The parameters, `{}` where there are none. What the machine has dealt with (`_meta`, input
    /// responses) is still in them.
    pub params: RawJson<'a>,
    /// The revision that governs this request.
    pub revision: Revision,
    /// What the other side declared: for this session, or with this request.
    pub capabilities: Capabilities,
    /// Whether the other side wants progress.
    pub wants_progress: bool,
    /// Answers of the user or the host from an earlier round.
    pub inputs: InputResponseParams<'a>,
    /// What it is about, as the catalog has it.
    pub target: Target,
    /// What a layer above keeps with the request. Empty as the machine makes it, unless an earlier
    /// round had something.
    pub attachment: Attachment,
    pub(crate) places: Places,
}

impl Request<'_> {
    /// What it is about: the value of `name`, `uri` or `taskId`, by its method, as every check before
    /// has read it.
    #[must_use]
    pub fn subject(&self) -> Option<RawJson<'_>> {
        self.places.subject(&self.params)
    }

    /// The value of `arguments`, an object where the method is one that has some.
    #[must_use]
    pub fn arguments(&self) -> Option<RawJson<'_>> {
        self.places.arguments(&self.params)
    }

    /// Lets go of the parameters, and of the subject and the arguments with them.
    pub fn clear_params(&mut self) {
        (self.params, self.places) = (RawJson::EMPTY_OBJECT, Places::default());
    }

    /// The same request, free of the frame's lifetime.
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
            places: self.places,
            attachment: self.attachment,
        }
    }
}

/// What earlier rounds of a request brought: the same in both eras.
#[derive(Clone, Debug, Default)]
pub struct InputResponseParams<'a> {
    pub(crate) responses: Option<RawJson<'a>>,
    pub(crate) state: Option<Cow<'a, str>>,
    /// Questions that a legacy client answered with an error.
    pub(crate) refused: Option<Box<[(String, ErrorObject<'static>)]>>,
}

impl<'a> InputResponseParams<'a> {
    /// What a layer above got itself: the `responses`, an object with the keys of the questions, and
    /// the `state` of the round.
    #[must_use]
    pub fn new(responses: Option<RawJson<'a>>, state: Option<String>) -> Self {
        Self { responses, state: state.map(Cow::Owned), refused: None }
    }

    /// The result that answers the question `key`.
    #[must_use]
    pub fn response(&self, key: &str) -> Option<RawJson<'_>> {
        self.responses.as_ref()?.get(key)
    }

    /// All results, an object with the keys of the questions; `None` in the first round.
    #[must_use]
    pub const fn responses(&self) -> Option<&RawJson<'_>> {
        self.responses.as_ref()
    }

    /// The error that a legacy client answered the question `key` with. A modern client that
    /// refuses does not come back at all.
    #[must_use]
    pub fn refusal(&self, key: &str) -> Option<&ErrorObject<'static>> {
        let refused = self.refused.as_deref()?;
        refused.iter().find(|(name, _)| name == key).map(|(_, error)| error)
    }

    /// The state that the server put into the earlier round, as it came back.
    ///
    /// From a modern client this is an attacker's input until it is verified.
    // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006]
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Replaces the state: for a layer above that seals it or keeps it on this side.
    pub fn set_state(&mut self, state: Option<String>) {
        self.state = state.map(Cow::Owned);
    }

    /// Whether this is the first round.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.responses.is_none() && self.state.is_none() && self.refused.is_none()
    }

    /// The same, free of the frame's lifetime.
    #[must_use]
    pub fn into_owned(self) -> InputResponseParams<'static> {
        InputResponseParams {
            responses: self.responses.map(RawJson::into_owned),
            state: self.state.map(|state| Cow::Owned(state.into_owned())),
            refused: self.refused,
        }
    }
}

/// A notification of the other side.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification<'a> {
    /// The method.
    pub method: MethodName<'a>,
    /// The parameters, `{}` where there are none.
    pub params: RawJson<'a>,
    /// The revision that governs it.
    pub revision: Revision,
    /// The subscription of this side that it belongs to.
    pub subscription: Option<CallHandle>,
}

impl Notification<'_> {
    fn into_owned(self) -> Notification<'static> {
        Notification {
            method: self.method.into_owned(),
            params: self.params.into_owned(),
            revision: self.revision,
            subscription: self.subscription,
        }
    }
}

/// Progress of a call; `progress` is greater with each one of the same round.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The call.
    pub call: CallHandle,
    /// How far it is, in units of the server's choice.
    pub progress: f64,
    /// How far it will go, where that is known.
    pub total: Option<f64>,
    /// A remark for people.
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

/// The end of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ended<'a> {
    /// The call. Its handle is stale from here on.
    pub call: CallHandle,
    /// The result, an object; or why there is none.
    pub outcome: Result<RawJson<'a>, Failure<'a>>,
}

impl Ended<'_> {
    fn into_owned(self) -> Ended<'static> {
        Ended {
            call: self.call,
            outcome: match self.outcome {
                Ok(result) => Ok(result.into_owned()),
                Err(failure) => Err(failure.into_owned()),
            },
        }
    }
}

/// Why a call has no result, by whose doing.
// MCP 2026-07-28 basic/index#error-codes [RPC-029]: local ends are never dressed up as errors of
// the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure<'a> {
    /// The other side answered with an error.
    #[error("{0}")]
    Refused(ErrorObject<'a>),
    /// The other side's answer cannot be one to this call.
    #[error("the answer is not valid: {0}")]
    InvalidAnswer(&'static str),
    /// No answer came in time; a cancellation was sent.
    #[error("no answer in time")]
    TimedOut {
        /// The hard deadline passed, which progress does not move.
        hard: bool,
    },
    /// This side cancelled it, or ended the subscription.
    #[error("cancelled")]
    Cancelled,
    /// The server asked for input more often than the limit allows.
    #[error("the server asked for input in more than {limit} rounds")]
    TooManyRounds {
        /// [`Limits::rounds_max`](crate::peer::Limits::rounds_max).
        limit: u32,
    },
    /// The server asks for input, and what would have to be kept of it is more than the limit
    /// allows.
    #[error("the call would have to keep more than {limit} bytes of input")]
    TooMuchInput {
        /// [`Limits::input_bytes_max`](crate::peer::Limits::input_bytes_max).
        limit: usize,
    },
    /// The host refused to give an input that the call cannot go on without.
    #[error("the host refused the input `{key}`: {error}")]
    InputRefused {
        /// The server's name for it.
        key: String,
        /// What the host said.
        error: ErrorObject<'static>,
    },
    /// The connection ended first.
    #[error("the connection ended before the answer")]
    ConnectionLost,
    /// The way of this call came to nothing, and other calls may fare better.
    #[error(transparent)]
    Transport(TransportFailure),
}

impl Failure<'_> {
    /// The same failure, free of the frame's lifetime.
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

/// A question to the host: a message of its model, an answer of its user, its roots.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputRequested<'a> {
    /// What to answer it by.
    pub handle: InputHandle,
    /// `sampling/createMessage`, `elicitation/create` or `roots/list`.
    pub method: Method,
    /// The parameters of that method, `{}` where there are none.
    pub params: RawJson<'a>,
    /// The revision that governs it.
    pub revision: Revision,
    /// The call that asks, where the revision says which one it is.
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

/// The other side gave something up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cancelled<'a> {
    /// What it gave up.
    pub subject: Subject,
    /// Why, in its words: for the log.
    // MCP 2026-07-28 basic/patterns/cancellation#implementation-notes [CANC-008]
    pub reason: Option<Cow<'a, str>>,
}

/// What a cancellation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A request that was being worked on.
    Request(RequestHandle),
    /// A question to the host.
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

/// A subscription is in force. It comes again where a session on HTTP had to be renewed and the new
/// one honours less.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Subscribed {
    /// The subscription.
    pub subscription: CallHandle,
    /// What the server honours of what was asked for.
    // MCP 2026-07-28 basic/patterns/subscriptions#acknowledgment [SUBS-005]
    pub honoured: SubscriptionFilter,
}

/// A rule that the other side broke, for logs and for policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A frame that is no message.
    #[error("malformed message: {0}")]
    Malformed(Reason),
    /// A frame longer than the decoder's limit; it was skipped.
    #[error("a frame of more than {limit} bytes was skipped")]
    FrameTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The input ended inside a frame.
    #[error("the input ended {length} bytes into a frame")]
    FrameCutShort {
        /// How much of it came, in bytes.
        length: usize,
    },
    /// A request with the id of one in flight.
    #[error("request id {0} is in use")]
    DuplicateId(RequestId),
    /// More requests at once than the limit; this one was refused.
    #[error("more requests in flight than this side accepts")]
    TooManyRequests,
    /// A response to nothing.
    #[error("a response to a request that is not in flight")]
    UnknownResponse(Option<RequestId>),
    /// A message that the revision, the direction or a capability forbids.
    #[error("{0}")]
    Forbidden(#[from] GateError),
    /// A message that does not belong here at this time.
    #[error("{0}")]
    OutOfPlace(&'static str),
    /// Parameters that are not as the method has them.
    #[error("`{method}`: {what}")]
    BadParameters {
        /// The method.
        method: Method,
        /// What is wrong.
        what: &'static str,
    },
    /// A tool whose definition says impossible things of HTTP headers; it was taken out of the
    /// list.
    // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-017]
    #[error("the tool `{tool}` is left out of the list: {reason}")]
    ToolExcluded {
        /// The tool.
        tool: String,
        /// What is wrong with its definition.
        reason: String,
    },
    /// A message of this side that is no call did not get through: a notification, an answer.
    #[error("`{what}` did not get through: {failure}")]
    Undelivered {
        /// The method of a notification; `response` of an answer.
        what: String,
        /// Why.
        failure: TransportFailure,
    },
    /// The stream for what a legacy server says unasked is lost for the rest of the session.
    #[error("nothing that the server says unasked is heard any more: {0}")]
    Deaf(TransportFailure),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    #[error("closed by this side")]
    Local,
    /// The other side closed its output.
    #[error("the other side closed the connection")]
    EndOfInput,
    /// The other side broke a rule for which the policy says so.
    #[error("closed because of a violation: {0}")]
    Violation(Violation),
    /// The other side left keep-alive pings without an answer.
    // MCP 2025-11-25 basic/utilities/ping#error-handling [PING-004]
    #[error("the other side does not answer pings")]
    Unresponsive,
    /// The client and the server found no way to talk.
    #[error("could not open the connection: {0}")]
    OpeningFailed(OpeningFailure),
    /// The way that the whole connection takes came to nothing.
    #[error(transparent)]
    Transport(TransportFailure),
}

/// Why a client could not open a connection: distinct failures, as each wants another remedy.
// MCP 2025-11-25 basic/lifecycle#error-handling [LIFE-008]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpeningFailure {
    /// The server answered with a revision that this client does not speak.
    #[error("the server speaks {}, which this client does not", .0.as_str())]
    UnknownRevision(Json),
    /// The server is of the modern era and this client speaks none of its revisions.
    #[error("the server speaks none of this client's revisions; it lists {}", .0.as_str())]
    NoCommonRevision(Json),
    /// The server is of the legacy era and this client speaks modern revisions only.
    // MCP 2026-07-28 basic/versioning#compatibility-matrix [VER-029]
    #[error("the server needs the `initialize` handshake; allow a revision up to 2025-11-25")]
    LegacyServer,
    /// The server refused `initialize`.
    #[error("the server refused `initialize`: {0}")]
    Refused(ErrorObject<'static>),
    /// The server's answer is not valid.
    #[error("the server's answer to the opening request is not valid: {0}")]
    InvalidAnswer(&'static str),
    /// No answer came in time.
    #[error("the server did not answer the opening request in time")]
    TimedOut,
    /// The opening request came to nothing on its way. That says nothing of the server's era.
    #[error("the opening request failed: {0}")]
    Transport(TransportFailure),
}

/// Texts of one round: what the server asks, by key.
pub(crate) type Keyed<T> = Vec<(String, T)>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_of_reasonable_size() {
        assert!(size_of::<Event<'_>>() <= 320, "{}", size_of::<Event<'_>>());
    }
}
