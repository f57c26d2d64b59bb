use alloc::string::String;
use core::time::Duration;

use crate::jsonrpc::ErrorObject;

/// Why a binding with a channel for each request could not carry a message.
///
/// On a byte stream none of these occurs: there the connection works or is lost as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportFailure {
    /// The message never left: no route, no name, no connection, no TLS. It did not run, so it may
    /// be tried again.
    #[error("the server could not be reached")]
    NotSent,
    /// The exchange broke before its answer. Whether the request ran is unknown.
    #[error("the exchange broke before the answer")]
    Broken,
    /// The stream ended without the answer, and it gave nothing to resume it by, or its revision has
    /// no resumption. Whether the request ran is unknown.
    #[error("the stream ended before the answer and cannot be resumed")]
    StreamEnded,
    /// The stream was lost, and so were the attempts to resume it.
    #[error("the stream was lost; {attempts} attempts to resume it failed")]
    StreamLost {
        /// The attempts that were made since the stream last said anything.
        attempts: u32,
    },
    /// The server does not resume the stream.
    #[error("the server refused to resume the stream, with HTTP status {status}")]
    NotResumed {
        /// The status code.
        status: u16,
    },
    /// The server ended the session, and the call with it.
    // MCP 2025-11-25 basic/transports#session-management [SESS-008]
    #[error("the server ended the session")]
    SessionLost,
    /// The server refused with a status of HTTP and no error of JSON-RPC to this request.
    #[error("the server refused with HTTP status {status}")]
    Status {
        /// The status code.
        status: u16,
        /// When to try again, in the server's words.
        retry_after: Option<Duration>,
        /// The error in the body, where that is one without an id.
        error: Option<ErrorObject<'static>>,
    },
    /// The server wants to know who asks, or does not let whom it knows.
    #[error("the server refused the authorization, with HTTP status {status}")]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// The value of `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The server wants to know who asks, and this side, which sees to that, came to nothing.
    #[error("the authorization failed: {reason}")]
    AuthorizationFailed {
        /// Why, for the user. There are no secrets in it.
        reason: String,
    },
    /// The server sends the client somewhere where it does not go: to another origin, with a status
    /// that would change the method, or once too often.
    #[error("the server redirects to `{target}`, which is not followed")]
    Redirected {
        /// Where to, as far as that could be read.
        target: String,
    },
    /// An argument of the call cannot be said in the header that the tool asks for. Nothing was
    /// sent.
    // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-014]
    #[error("the call cannot be put into headers: {what}")]
    Unmirrorable {
        /// Which one, and why.
        what: String,
    },
    /// The server's answer is not one that this transport has.
    #[error("the server's response is not valid: {0}")]
    InvalidResponse(&'static str),
    /// The server's answer is longer than a limit.
    #[error("the server's response is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

#[cfg(feature = "http")]
impl TransportFailure {
    /// Whether it is for want of an authorization, and says nothing else of the server.
    pub(crate) const fn is_of_authorization(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::AuthorizationFailed { .. })
    }
}
