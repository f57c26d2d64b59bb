use alloc::string::String;

use crate::jsonrpc::WriteError;
use crate::protocol::{Capability, GateError, Method};

use super::event::CloseReason;

/// The connection is over. Sticky: every further input and call gets the same error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct ConnectionClosed {
    /// Why.
    pub reason: CloseReason,
}

/// Why a command was not carried out, or not as wanted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The caller's: the revision, the direction or a missing capability forbids the method.
    /// Nothing was sent.
    #[error(transparent)]
    Forbidden(#[from] GateError),
    /// The caller's: the method is no request, or no notification, or the machine alone sends it.
    /// Nothing was sent.
    #[error("`{0}` is not for the application to send this way")]
    OutOfPlace(Method),
    /// The caller's: the connection is not open yet; wait for
    /// [`Event::Opened`](crate::peer::Event::Opened).
    #[error("the connection is not open yet")]
    NotOpen,
    /// The caller's: the parameters or the result cannot be written at this revision. No parameters
    /// were sent; a client that waits for the result was answered with an internal error, so that it
    /// does not wait for nothing.
    #[error(transparent)]
    NotWritable(#[from] WriteError),
    /// A local limit: [`Limits::calls_in_flight_max`](crate::peer::Limits::calls_in_flight_max).
    #[error("{limit} calls are in flight already")]
    TooManyCalls {
        /// The limit.
        limit: usize,
    },
    /// The connection is over.
    #[error(transparent)]
    Closed(#[from] ConnectionClosed),
    /// No answer is due any more: the request was answered, or the other side cancelled it. The
    /// latter is an ordinary race and no fault; nothing was sent.
    #[error("no answer is due: the request was answered or cancelled")]
    NotDue,
    /// The caller's: the result does not fit the output schema of the tool. The other side was
    /// answered with an internal error.
    #[error("{0}")]
    InvalidOutput(String),
    /// The client lacks a capability that the input requests need. It was answered so.
    #[error("the client did not declare `{0}`")]
    NotDeclared(Capability),
    /// The caller's: this method's requests cannot be answered with input requests, or they ask
    /// for nothing, or for too much. The other side was answered with an internal error.
    #[error("{0}")]
    InputNotAllowed(&'static str),
}
