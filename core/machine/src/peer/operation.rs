//! Operations: the requests and notifications of a connection in both directions, for telemetry.

use core::any::Any;
use core::fmt;

use mcp_sansio_sync::Arc;

use crate::binding::OperationTransport;
use crate::jsonrpc::{ErrorObject, RawJson, RequestId};
use crate::protocol::{Method, Side};
use crate::{Caller, Revision};

use super::event::{CloseReason, Failure};

/// Receives every operation of a connection: each request and notification, sent or received,
/// whether or not the application sees it.
///
/// The machine calls it while it handles a message or a command, before the message has any effect
/// and before it is written. So it reads its own clock, and it runs in the context of the code that
/// drives the machine. It must return quickly, must not block and must not panic.
///
/// ```
/// use mcp_sansio::peer::{
///     Observation, Operation, OperationEnd, OperationObserver, OperationOutcome,
/// };
/// use std::sync::Arc;
///
/// /// Prints a line for each operation.
/// #[derive(Debug)]
/// struct Lines;
///
/// #[derive(Debug)]
/// struct Line(String);
///
/// impl OperationObserver for Lines {
///     fn begin(&self, operation: &Operation<'_>) -> Option<Arc<dyn Observation>> {
///         Some(Arc::new(Line(operation.method.into())))
///     }
/// }
///
/// impl Observation for Line {
///     fn end(&self, end: &OperationEnd<'_>) {
///         println!("{}: {}", self.0, matches!(end.outcome, OperationOutcome::Done));
///     }
/// }
/// # let _: &dyn OperationObserver = &Lines;
/// ```
pub trait OperationObserver: fmt::Debug + Send + Sync {
    /// An operation begins. `None` ignores it.
    fn begin(&self, operation: &Operation<'_>) -> Option<Arc<dyn Observation>>;

    /// A legacy session begins: the handshake has negotiated `revision`, and this side has `role`.
    /// `None` ignores it.
    fn begin_session(
        &self,
        role: Side,
        revision: Revision,
        transport: &OperationTransport,
    ) -> Option<Arc<dyn Observation>> {
        let _ = (role, revision, transport);
        None
    }

    /// Returns the context of the code that makes a call, which becomes the
    /// [cause](Operation::cause) of the operation. Called where the call is made, which may be
    /// another task than the one that drives the machine.
    fn call_context(&self) -> Option<CallContext> {
        None
    }
}

/// An operation that has begun. It ends once; if it is dropped before, the connection ended or the
/// request was withdrawn.
pub trait Observation: Any + fmt::Debug + Send + Sync {
    /// Passes members for the `_meta` of a sent request or notification to `add`, each with its key
    /// and a text. A member replaces one of the caller with the same key.
    fn meta(&self, add: &mut dyn FnMut(&str, &str)) {
        let _ = add;
    }

    /// Runs `part`, a part of a received request's handler, in the context of the operation.
    /// It must call `part` exactly once.
    fn run(&self, part: &mut dyn FnMut()) {
        part();
    }

    /// Returns whether [`end`](Self::end) needs the result of the operation.
    fn wants_result(&self) -> bool {
        false
    }

    /// The operation has ended.
    fn end(&self, end: &OperationEnd<'_>);
}

/// A request or a notification at its beginning.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Operation<'a> {
    /// Whether this side sends it or has received it.
    pub direction: Direction,
    /// The role of this side.
    pub role: Side,
    /// The method as written. A received one may be any text, and is empty if HTTP refuses a
    /// message by a head that does not name it.
    pub method: &'a str,
    /// The id of a request; `None` for a notification.
    pub id: Option<&'a RequestId>,
    /// The parameters, `{}` if absent, without the members of `_meta` that the machine adds.
    pub params: &'a RawJson<'a>,
    /// The members that the caller adds to `_meta`; for a received message, its `_meta`.
    pub meta: Option<RawJson<'a>>,
    /// The revision, if it is known: before the handshake it is not.
    pub revision: Option<Revision>,
    /// The connection.
    pub transport: &'a OperationTransport,
    /// The sender of a received message.
    pub caller: Option<&'a Caller>,
    /// The cause of a sent message, if it is known.
    pub cause: Cause<'a>,
}

impl Operation<'_> {
    /// Returns the method, if the protocol defines it.
    #[must_use]
    pub fn known_method(&self) -> Option<Method> {
        Method::parse(self.method)
    }
}

/// The direction of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Direction {
    /// This side sends it.
    Sent,
    /// This side has received it.
    Received,
}

/// The cause of a message that this side sends.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Cause<'a> {
    /// The machine itself, or not known.
    Unknown,
    /// A call of the application, with the context in which it was made.
    Call(&'a CallContext),
    /// A received request whose handler sends the message.
    Request(&'a dyn Observation),
}

/// The end of an operation or a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OperationEnd<'a> {
    /// The outcome.
    pub outcome: OperationOutcome<'a>,
    /// The revision, if it is known by now.
    pub revision: Option<Revision>,
    /// The id of the session, if there is one by now.
    pub session_id: Option<&'a str>,
    /// The result, an object, if the observation [wants](Observation::wants_result) it and it was
    /// written or received.
    pub result: Option<RawJson<'a>>,
}

/// The outcome of an operation or a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OperationOutcome<'a> {
    /// A request was answered with a result, a notification was sent or handled, or a session ended
    /// as it should.
    Done,
    /// The result of a tool call says that the call failed.
    ToolFailed,
    /// The request was answered with this error.
    Error(&'a ErrorObject<'a>),
    /// A sent request ended without an answer, or with one that is not valid.
    Failed(&'a Failure<'a>),
    /// A received message was refused with an HTTP status, before it reached its connection.
    Refused {
        /// The status code.
        status: u16,
        /// The JSON-RPC error in the response, if there is one.
        error: Option<&'a ErrorObject<'a>>,
    },
    /// A received notification, or a request that cannot be answered, violates the protocol.
    Violation,
    /// The sender has cancelled the request, or the connection ended before the answer.
    Cancelled,
    /// The connection of a session was closed for this reason.
    Closed(&'a CloseReason),
}

/// The context of a call, as its observer has captured it.
#[derive(Clone)]
pub struct CallContext(Arc<dyn Any + Send + Sync>);

impl CallContext {
    /// Creates a context.
    #[must_use]
    pub const fn new(context: Arc<dyn Any + Send + Sync>) -> Self {
        Self(context)
    }

    /// Returns the context, if it is a `T`.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

crate::partial_debug! { impl Debug for CallContext(..) }
