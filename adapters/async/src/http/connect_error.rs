use std::fmt;
use std::io;

use mcp_sansio::http::{InvalidUrl, Location};
use mcp_sansio::peer::{CloseReason, OpeningFailure, TransportFailure};

/// Why there is no connection to a server over HTTP. The messages are for the user, and have no
/// credentials in them: of a URL they leave out the query.
///
/// `C` is what goes wrong with the exchanges of a runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError<C> {
    /// The text is not the URL of a server: the caller's fault.
    // Not the text itself: it may have a password in it.
    #[error("{0}; an example of one is `https://example.com/mcp`")]
    Url(#[from] InvalidUrl),
    /// There is nothing to send requests with.
    #[error(transparent)]
    Connector(C),
    /// The system has not what the connection takes: a thread or descriptors to drive it.
    #[error("nothing drives the connection: {0}")]
    System(#[source] io::Error),
    /// No request reached the server.
    #[error("the server at {url} cannot be reached: {cause}; is it running, and is the URL right?")]
    Unreachable {
        /// The server.
        url: String,
        /// What went wrong.
        cause: C,
    },
    /// The server said nothing in time.
    #[error(
        "the server at {url} does not answer; is there an MCP server? A slow one may need \
         `Host::timeouts` with more patience"
    )]
    Silent {
        /// The server.
        url: String,
    },
    /// The operating system has no entropy for the secrets of an authorization.
    #[error("the operating system has no entropy: {0}")]
    Entropy(#[source] io::Error),
    /// The server wants to know who asks, and signing in to it came to nothing.
    #[error("no authorization for the server at {url}: {reason}")]
    AuthorizationFailed {
        /// The server.
        url: String,
        /// What is wrong, for the user.
        reason: String,
    },
    /// The server wants to know who asks, or does not let whom it knows, and the host has no
    /// authorization.
    #[error("the server at {url} wants an authorization (HTTP status {status})")]
    Unauthorized {
        /// The server.
        url: String,
        /// 401 or 403.
        status: u16,
        /// The value of `WWW-Authenticate`, which says how to get one.
        challenge: Option<String>,
    },
    /// There is something, but not what the URL says.
    #[error("no MCP server at {url}: HTTP status {status}; is the path of the URL right?")]
    NotFound {
        /// The server.
        url: String,
        /// 404, 405 or 410.
        status: u16,
    },
    /// The two found no way to talk.
    #[error("no connection to the server at {url}: {}{}", DisplayReason(.reason), DisplayCause(.cause.as_ref()))]
    Refused {
        /// The server.
        url: String,
        /// What is wrong.
        reason: CloseReason,
        /// What last went wrong with an exchange, which may have nothing to do with it.
        cause: Option<C>,
    },
}

impl<C> ConnectError<C> {
    /// Of a connection to the server at `url` that was closed for `reason` before it was open, for
    /// those who drive the endpoint by themselves. `last_failure` is the one of the
    /// exchanger.
    #[must_use]
    pub fn from_close_reason(url: &Location, reason: CloseReason, last_failure: Option<C>) -> Self {
        use TransportFailure::{AuthorizationFailed, NotSent, Status, Unauthorized};

        let (url, _query) = url.as_str().split_once('?').unwrap_or((url.as_str(), ""));
        let (url, last_failure) = (url.to_owned(), last_failure);
        let CloseReason::OpeningFailed(failure) = &reason else {
            return Self::Refused { url, reason, cause: last_failure };
        };
        match (failure, last_failure) {
            (OpeningFailure::Transport(NotSent), Some(cause)) => Self::Unreachable { url, cause },
            (OpeningFailure::TimedOut, _) => Self::Silent { url },
            (OpeningFailure::Transport(Unauthorized { status, challenge }), _) => {
                Self::Unauthorized { url, status: *status, challenge: challenge.clone() }
            }
            (OpeningFailure::Transport(AuthorizationFailed { reason }), _) => {
                Self::AuthorizationFailed { url, reason: reason.clone() }
            }
            (OpeningFailure::Transport(Status { status: status @ (404 | 405 | 410), .. }), _) => {
                Self::NotFound { url, status: *status }
            }
            (_, cause) => Self::Refused { url, reason, cause },
        }
    }
}

/// What is wrong, without what the sentence before it says already.
struct DisplayReason<'a>(&'a CloseReason);

impl fmt::Display for DisplayReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            CloseReason::OpeningFailed(OpeningFailure::Transport(failure)) => failure.fmt(f),
            CloseReason::OpeningFailed(failure) => failure.fmt(f),
            reason => reason.fmt(f),
        }
    }
}

/// What the network had to say, where it did.
struct DisplayCause<'a, C>(Option<&'a C>);

impl<C: fmt::Display> fmt::Display for DisplayCause<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |cause| write!(f, " ({cause})"))
    }
}
