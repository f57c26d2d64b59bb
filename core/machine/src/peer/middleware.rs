//! Middleware around the messages of a connection, for either role.

use crate::jsonrpc::{ErrorObject, Json, RawJson, RequestId};
use crate::protocol::{Capabilities, Method, Side};
use crate::{Caller, Revision};

/// Middleware around all messages of a connection: requests, responses and notifications, sent and
/// received, those that the machine sends and answers itself included.
///
/// It is set with
/// [`ConnectionOptions::message_middleware`](super::ConnectionOptions::message_middleware). The
/// first that is set is the outermost: it sees received messages first, and sent messages last.
/// Received messages pass it after parsing and before all checks of the protocol, so that the
/// machine checks a changed message as if the peer had sent it. Sent messages pass it before they
/// are written, after the checks. Requests that HTTP refuses before, for their header fields, their
/// session or their token, do not reach it.
///
/// A recording contains the messages on the wire. A replay has no middleware, so its
/// outputs may differ.
///
/// Its functions must return quickly: the connection waits for them. If one panics and the
/// [`PanicGuard`](crate::PanicGuard) of the connection catches that, a notification is dropped, and
/// a request or response is replaced by an internal error.
///
/// The identity of a message cannot be changed: in messages of the protocol, the members of the
/// parameters `name`, `uri`, `ref`, `taskId`, `requestId`, `elicitationId`,
/// `progressToken`, and the `protocolVersion` of `initialize`; in `_meta`, those for the protocol
/// version, the capabilities of the client, the progress token, the subscription and the related
/// task. A result keeps its `resultType`. A change of these drops a notification, and is an
/// internal error for a request or a response.
///
/// ```
/// use mcp_sansio::jsonrpc::ErrorObject;
/// use mcp_sansio::peer::{MessageMiddleware, MiddlewareMessage, RequestAction};
///
/// /// Refuses subscriptions.
/// #[derive(Debug)]
/// struct NoSubscriptions;
///
/// impl MessageMiddleware for NoSubscriptions {
///     fn request(&self, message: &MiddlewareMessage<'_>) -> RequestAction {
///         match message.method() {
///             "resources/subscribe" | "subscriptions/listen" => {
///                 RequestAction::Refuse(ErrorObject::invalid_request("no subscriptions today"))
///             }
///             _ => RequestAction::Forward,
///         }
///     }
/// }
/// ```
// MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-028] [EXT-029]
pub trait MessageMiddleware: Send + Sync {
    /// Decides about a notification.
    fn notification(&self, message: &MiddlewareMessage<'_>) -> NotificationAction {
        let _ = message;
        NotificationAction::Forward
    }

    /// Decides about a request.
    fn request(&self, message: &MiddlewareMessage<'_>) -> RequestAction {
        let _ = message;
        RequestAction::Forward
    }

    /// Decides about a response with this outcome. The effects of its request have taken place.
    fn response(
        &self,
        response: &MiddlewareResponse<'_>,
        outcome: Result<&RawJson<'_>, &ErrorObject<'_>>,
    ) -> ResponseAction {
        let _ = (response, outcome);
        ResponseAction::Forward
    }
}

/// A request or a notification that passes [`MessageMiddleware`].
#[derive(Debug)]
pub struct MiddlewareMessage<'a> {
    pub(super) sender: Side,
    pub(super) id: Option<&'a RequestId>,
    pub(super) method: &'a str,
    pub(super) params: RawJson<'a>,
    pub(super) peer: PeerContext<'a>,
}

/// The facts about the peer that a machine knows when it receives a message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerContext<'a> {
    pub(super) caller: Option<&'a Caller>,
    pub(super) revision: Option<Revision>,
    pub(super) capabilities: Option<Capabilities>,
}

impl MiddlewareMessage<'_> {
    /// Returns the side that sends it.
    #[must_use]
    pub const fn sender(&self) -> Side {
        self.sender
    }

    /// Returns the id of a request.
    #[must_use]
    pub const fn id(&self) -> Option<&RequestId> {
        self.id
    }

    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &str {
        self.method
    }

    /// Returns the parameters: a JSON object. Those of a request that this side sends have only the
    /// members of `_meta` that the application has set; the machine adds its own.
    #[must_use]
    pub const fn params(&self) -> &RawJson<'_> {
        &self.params
    }

    /// Returns the sender, if it is the client of a server: its principal, scopes and session.
    #[must_use]
    pub const fn caller(&self) -> Option<&Caller> {
        self.peer.caller
    }

    /// Returns the revision that governs the message, if it is received and the revision is known.
    #[must_use]
    pub const fn revision(&self) -> Option<Revision> {
        self.peer.revision
    }

    /// Returns the capabilities that the sender declared, if the message is received and they are
    /// known.
    #[must_use]
    pub const fn peer_capabilities(&self) -> Option<Capabilities> {
        self.peer.capabilities
    }
}

/// A response that passes [`MessageMiddleware`].
#[derive(Debug)]
pub struct MiddlewareResponse<'a> {
    pub(super) sender: Side,
    pub(super) id: &'a RequestId,
    pub(super) method: Option<Method>,
}

impl MiddlewareResponse<'_> {
    /// Returns the side that sends it.
    #[must_use]
    pub const fn sender(&self) -> Side {
        self.sender
    }

    /// Returns the id of the request, which [`MiddlewareMessage::id`] returned.
    #[must_use]
    pub const fn id(&self) -> &RequestId {
        self.id
    }

    /// Returns the method of the request. `None` if the protocol does not define it, or if this
    /// side answers with an error.
    #[must_use]
    pub const fn method(&self) -> Option<Method> {
        self.method
    }
}

/// The decision of a middleware about a notification.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NotificationAction {
    /// It is passed on.
    Forward,
    /// It is passed on with these parameters, a JSON object. Parameters that do not fit the method,
    /// or change what [identifies](MessageMiddleware) the message, drop it.
    Replace(Json),
    /// It is dropped. Without effect on `notifications/cancelled`, `notifications/initialized` and
    /// `notifications/subscriptions/acknowledged`: the peer waits for them.
    Drop,
}

/// The decision of a middleware about a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RequestAction {
    /// It is passed on.
    Forward,
    /// It is passed on with these parameters, a JSON object.
    Replace(Json),
    /// It is answered with this result, a JSON object, without its handler and without effect. The
    /// machine still checks the request, and completes the result. Only received requests other
    /// than `initialize` are answered; for others this is an internal error.
    Answer(Json),
    /// It is answered with this error. If this side sends it, it is not sent, and its call fails
    /// with [`CommandError::RefusedByMiddleware`](super::CommandError::RefusedByMiddleware).
    Refuse(ErrorObject<'static>),
}

/// The decision of a middleware about a response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ResponseAction {
    /// It is passed on.
    Forward,
    /// It is passed on with this result, a JSON object. Without effect on an error.
    Replace(Json),
    /// This error is passed on in its place.
    Refuse(ErrorObject<'static>),
}
