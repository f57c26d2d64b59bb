use alloc::string::String;

use crate::jsonrpc::WriteError;
use crate::protocol::{Capability, GateError, Method};

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
}
