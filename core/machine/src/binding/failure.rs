use alloc::string::String;
use core::fmt;
use core::time::Duration;

use crate::jsonrpc::ErrorObject;

/// Why a binding with one channel per request could not deliver a message.
///
/// These failures do not occur on a byte stream, which works or is lost as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportFailure {
    /// The message was not sent: no route, name resolution, connection or TLS session. The request
    /// did not run, so it can be retried.
    #[error("the server could not be reached")]
    NotSent,
    /// The exchange broke before the response arrived. Whether the request ran is unknown.
    #[error("the exchange broke before the answer")]
    Broken,
    /// The stream ended before the response. It cannot be resumed, because it sent no event id or
    /// because its revision has no resumption. Whether the request ran is unknown.
    #[error("the stream ended before the answer and cannot be resumed")]
    StreamEnded,
    /// The stream was lost, and all attempts to resume it failed.
    #[error("the stream was lost; {attempts} attempts to resume it failed")]
    StreamLost {
        /// Number of attempts since the last event on the stream.
        attempts: u32,
    },
    /// The server refused to resume the stream.
    #[error("the server refused to resume the stream, with HTTP status {status}")]
    NotResumed {
        /// The status code.
        status: u16,
    },
    /// The server ended the session and with it the call.
    // MCP 2025-11-25 basic/transports#session-management [SESS-008]
    #[error("the server ended the session")]
    SessionLost,
    /// The server refused with an HTTP status and without a JSON-RPC error for this request.
    #[error("the server refused with HTTP status {status}")]
    Status {
        /// The status code.
        status: u16,
        /// When to retry, as the server wrote it.
        retry_after: Option<Duration>,
        /// The JSON-RPC error in the body, if the body is one without an id.
        error: Option<ErrorObject<'static>>,
    },
    /// The server requires authorization, or denies access to the authorized client.
    #[error("the server refused the authorization, with HTTP status {status}{}", After(challenge.as_deref()))]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// The value of `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The server requires authorization, and the client's authorization flow failed.
    #[error("the authorization failed: {reason}")]
    AuthorizationFailed {
        /// The reason, for the user. It contains no secrets.
        reason: String,
    },
    /// The server redirects to a place that the client does not follow: another origin, a status
    /// that would change the method, or one redirect too many.
    #[error("the server redirects to `{target}`, which is not followed")]
    Redirected {
        /// The target, as far as it could be read.
        target: String,
    },
    /// An argument of the call cannot be represented in the header that the tool asks for. The call
    /// was not sent.
    // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-014]
    #[error("the call cannot be put into headers: {what}")]
    Unmirrorable {
        /// The argument, and the reason.
        what: String,
    },
    /// The server's response is not valid on this transport.
    #[error("the server's response is not valid: {0}")]
    InvalidResponse(&'static str),
    /// The server's response exceeds a limit.
    #[error("the server's response is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

/// Writes a challenge, which says for example which scope a token lacks.
struct After<'a>(Option<&'a str>);

impl fmt::Display for After<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(challenge) => write!(f, ": {challenge}"),
            None => Ok(()),
        }
    }
}

#[cfg(feature = "http")]
impl TransportFailure {
    /// Returns whether the failure concerns authorization only.
    pub(crate) const fn is_authorization_failure(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::AuthorizationFailed { .. })
    }
}
