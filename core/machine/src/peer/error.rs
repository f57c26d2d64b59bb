use alloc::boxed::Box;
use alloc::string::String;

use crate::binding::TransportFailure;
use crate::gate::{GateError, InvalidDeclaration};
use crate::jsonrpc::{ErrorObject, Json, WriteError};
use crate::protocol::{Capability, Era, Method, Revision};

use super::event::CloseReason;

/// The connection is closed. Sticky: every further input and call returns the same error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct ConnectionClosed {
    /// The reason.
    pub reason: CloseReason,
}

/// Why a command failed or had a different effect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The revision, the direction or a missing capability forbids the method. The caller's fault;
    /// the message was not sent.
    #[error(transparent)]
    Forbidden(#[from] GateError),
    /// The method is not a request or not a notification, or only the machine sends it. The
    /// caller's fault; the message was not sent.
    #[error("the application cannot send `{0}` this way")]
    OutOfPlace(Method),
    /// The connection is not open yet; wait for [`Event::Opened`](crate::peer::Event::Opened). The
    /// caller's fault.
    #[error("the connection is not open yet")]
    NotOpen,
    /// The parameters or the result cannot be encoded at this revision. The caller's fault.
    /// Parameters were not sent; a peer that waits for the result received an internal error.
    #[error(transparent)]
    NotWritable(#[from] WriteError),
    /// A local limit was reached:
    /// [`Limits::calls_in_flight_max`](crate::peer::Limits::calls_in_flight_max).
    #[error("{limit} calls are in flight already")]
    TooManyCalls {
        /// The limit.
        limit: usize,
    },
    /// The connection is closed.
    #[error(transparent)]
    Closed(#[from] ConnectionClosed),
    /// The request was already answered, or the peer cancelled it. The latter is an ordinary race
    /// and not a fault; the response was not sent.
    #[error("no answer is due: the request was answered or cancelled")]
    NotDue,
    /// The result does not match the output schema of the tool. The caller's fault; the peer
    /// received an internal error.
    #[error("{0}")]
    InvalidOutput(String),
    /// The client did not declare a capability that the input requests need. The client received an
    /// error that says so.
    #[error("the client did not declare `{0}`")]
    NotDeclared(Capability),
    /// Requests of this method cannot be answered with input requests, or the input requests are
    /// empty or too many. The caller's fault; the peer received an internal error.
    #[error("{0}")]
    InputNotAllowed(&'static str),
    /// The method cannot be sent as a notification of an extension: the protocol defines it, or the
    /// server is a modern one, to which clients send none. The caller's fault.
    #[error("the method is not a notification of an extension that can be sent here")]
    NotANotification,
    /// A [middleware](crate::peer::MessageMiddleware) refused the request, which was not sent.
    #[error("middleware refused the request: {0}")]
    RefusedByMiddleware(Box<ErrorObject<'static>>),
    /// The call has header fields, and the connection is a byte stream. The caller's fault; the
    /// request was not sent.
    #[error("a byte stream has no header fields")]
    NoHeaderFields,
}

/// Why a client could not open a connection. Each failure needs a different remedy.
// MCP 2025-11-25 basic/lifecycle#error-handling [LIFE-008]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpeningFailure {
    /// The server chose a revision that this client does not support.
    #[error("the server chose {}, which {}", .0.as_str(), unsupported(.0))]
    UnknownRevision(Json),
    /// The server is modern and this client supports none of its revisions.
    #[error("this client supports none of the server's revisions: {}", .0.as_str())]
    NoCommonRevision(Json),
    /// The server is legacy and this client supports only modern revisions.
    // MCP 2026-07-28 basic/versioning#compatibility-matrix [VER-029]
    #[error("the server needs the `initialize` handshake; allow a revision up to 2025-11-25")]
    LegacyServer,
    /// The server refused `initialize` or `server/discover`.
    #[error("the server refused the opening request: {0}")]
    Refused(ErrorObject<'static>),
    /// The server's response is not valid.
    #[error("the server's answer to the opening request is not valid: {0}")]
    InvalidAnswer(&'static str),
    /// The server's capabilities cannot be read.
    #[error("the server's answer to the opening request is not valid: {0}")]
    InvalidCapabilities(InvalidDeclaration),
    /// The response did not arrive in time.
    #[error("the server did not answer the opening request in time")]
    TimedOut,
    /// An extension of this client is not registered correctly, so nothing was sent.
    #[error(transparent)]
    Extension(Box<crate::protocol::ExtensionError>),
    /// The opening request failed in transport. This does not reveal the server's era.
    #[error("the opening request failed: {0}")]
    Transport(TransportFailure),
}

/// Says why a client does not support the revision that a server chose in response to `initialize`.
fn unsupported(version: &Json) -> &'static str {
    let revision = version.as_raw().to_text().and_then(|version| Revision::parse(&version));
    match revision.map(Revision::era) {
        Some(Era::Modern) => "has no `initialize`",
        _ => "this client does not support",
    }
}

impl OpeningFailure {
    /// Returns whether another attempt would fail in the same way, until the server or this client
    /// is changed: they have no revision in common, or the server refuses this client.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        use TransportFailure::{AuthorizationFailed, Redirected, Status, Unauthorized};

        match self {
            Self::UnknownRevision(_)
            | Self::NoCommonRevision(_)
            | Self::LegacyServer
            | Self::Extension(_)
            | Self::Transport(
                Unauthorized { .. } | AuthorizationFailed { .. } | Redirected { .. },
            ) => true,
            // Not: a timeout, too early, too many requests.
            Self::Transport(Status { status, .. }) => {
                matches!(status, 400..=499) && !matches!(status, 408 | 425 | 429)
            }
            _ => false,
        }
    }
}
