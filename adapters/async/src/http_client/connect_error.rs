use std::fmt;
use std::io;

use mcp_sansio::http::{InvalidUrl, Location};
use mcp_sansio::peer::{CloseReason, OpeningFailure, TransportFailure};

/// Why a connection to a server over HTTP could not be opened. The messages are for the user and
/// contain no credentials: the query of a URL is omitted.
///
/// `C` is the error type of the runtime's exchanges.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError<C> {
    /// The text is not a valid server URL: the caller's fault.
    // Omits the text, which may contain a password.
    #[error("{0}; an example of one is `https://example.com/mcp`")]
    Url(#[from] InvalidUrl),
    /// The connector could not be created.
    #[error(transparent)]
    Connector(C),
    /// The system is out of threads or descriptors to drive the connection.
    #[error("cannot start a driver for the connection: {0}")]
    System(#[source] io::Error),
    /// No request reached the server.
    #[error("the server at {url} cannot be reached: {cause}; is it running, and is the URL right?")]
    Unreachable {
        /// The URL of the server.
        url: String,
        /// The error of the last exchange.
        cause: C,
    },
    /// The server did not answer in time.
    #[error(
        "the server at {url} does not answer; is it an MCP server? For a slow one, raise \
         the limits of `Host::timeouts`"
    )]
    Silent {
        /// The URL of the server.
        url: String,
    },
    /// The operating system has no entropy for the secrets of an authorization.
    #[error("the operating system has no entropy: {0}")]
    Entropy(#[source] io::Error),
    /// The server requires authorization, and signing in to it failed.
    #[error("cannot sign in to the server at {url}: {reason}")]
    AuthorizationFailed {
        /// The URL of the server.
        url: String,
        /// Why signing in failed, for the user.
        reason: String,
    },
    /// The server requires authorization or refuses the given one, and the host has no
    /// `Authorization`.
    #[error("the server at {url} requires authorization (HTTP status {status}){}", DisplayBody(.body.as_deref()))]
    Unauthorized {
        /// The URL of the server.
        url: String,
        /// 401 or 403.
        status: u16,
        /// The value of `WWW-Authenticate`, which says how to obtain authorization.
        challenge: Option<String>,
        /// The start of the body, which may give the reason: see [`TransportFailure::excerpt`].
        body: Option<Box<str>>,
    },
    /// The URL leads to an HTTP server, but not to an MCP endpoint.
    #[error("no MCP server at {url}: HTTP status {status}{}; is the path of the URL right?", DisplayBody(.body.as_deref()))]
    NotFound {
        /// The URL of the server.
        url: String,
        /// 404, 405 or 410.
        status: u16,
        /// The start of the body, which may give the reason: see [`TransportFailure::excerpt`].
        body: Option<Box<str>>,
    },
    /// The peers could not agree on a connection.
    #[error("no connection to the server at {url}: {}{}", DisplayReason(.reason), DisplayCause(.cause.as_ref()))]
    Refused {
        /// The URL of the server.
        url: String,
        /// Why the connection closed.
        reason: CloseReason,
        /// The error of the last failed exchange, which may be unrelated.
        cause: Option<C>,
    },
}

impl<C> ConnectError<C> {
    /// Creates the error for a connection to the server at `url` that was closed for `reason`
    /// before it was open. For applications that drive the endpoint directly. `last_failure` comes
    /// from the exchanger.
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
            (OpeningFailure::Transport(Unauthorized { status, challenge, body }), _) => {
                let (challenge, body) = (challenge.clone(), body.clone());
                Self::Unauthorized { url, status: *status, challenge, body }
            }
            (OpeningFailure::Transport(AuthorizationFailed { reason }), _) => {
                Self::AuthorizationFailed { url, reason: reason.clone() }
            }
            (
                OpeningFailure::Transport(Status {
                    status: status @ (404 | 405 | 410), body, ..
                }),
                _,
            ) => Self::NotFound { url, status: *status, body: body.clone() },
            (_, cause) => Self::Refused { url, reason, cause },
        }
    }
}

/// Displays the reason without repeating the start of the sentence.
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

/// Displays the start of a body, if any.
struct DisplayBody<'a>(Option<&'a str>);

impl fmt::Display for DisplayBody<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |body| write!(f, ": {body}"))
    }
}

/// Displays the network error, if any.
struct DisplayCause<'a, C>(Option<&'a C>);

impl<C: fmt::Display> fmt::Display for DisplayCause<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |cause| write!(f, " ({cause})"))
    }
}
