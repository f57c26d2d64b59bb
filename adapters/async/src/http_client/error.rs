use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use hyper_util::client::legacy;
use mcp_sansio::http::{InvalidUrl, Location};
use mcp_sansio::peer::{CloseReason, OpeningFailure, TransportFailure};

use super::cause::{find, innermost};

/// Why an exchange has no response, or an incomplete one, grouped by cause. The message is for the
/// user and contains no credentials.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectorError {
    /// The connector cannot be built as configured: the caller's fault.
    #[error("{reason}")]
    Configuration {
        /// The invalid setting.
        reason: String,
    },
    /// The request is invalid and was not sent: the caller's fault.
    #[error("the request cannot be sent: {reason}")]
    Request {
        /// Why it is invalid.
        reason: String,
    },
    /// The connection to the server failed: its name is unknown, or it does not answer.
    #[error("cannot connect to {host}: {cause}; is it running, and is the URL right?")]
    Connect {
        /// The server, with its port.
        host: String,
        /// The error of the operating system.
        cause: Arc<io::Error>,
    },
    /// The TLS connection to the server failed: its certificate is not trusted, or it does not
    /// speak TLS.
    #[error("no secure connection to {host}: {cause}{}", tls_hint(.cause))]
    Tls {
        /// The server, with its port.
        host: String,
        /// The cause; contains a `rustls::Error` if TLS itself failed.
        cause: Arc<io::Error>,
    },
    /// The proxy did not connect to the server: it is unreachable, or it refused.
    #[error("cannot connect through the proxy {proxy}: {reason}")]
    Proxy {
        /// The proxy, with its port.
        proxy: String,
        /// Why it failed.
        reason: String,
    },
    /// The connection, including TLS and proxies, was not established in time.
    #[error("the connection to {host} was not established within {after:?}")]
    Timeout {
        /// The server, with its port.
        host: String,
        /// The time limit.
        after: Duration,
    },
    /// The response is not valid HTTP, or exceeds a limit: the server's fault.
    #[error("the server violates HTTP: {reason}")]
    Protocol {
        /// The violation.
        reason: String,
    },
    /// The connection was lost, or the server aborted the exchange. With TLS 1.3 this is also how a
    /// server refuses a client certificate, as it does so after the handshake.
    #[error("the connection was lost: {reason}")]
    Lost {
        /// The cause, if it is known.
        reason: String,
        /// Whether the request may have reached the server.
        sent: bool,
    },
}

impl ConnectorError {
    /// Returns whether the server may have received the request and acted on it. If not, it is safe
    /// to send the request again.
    #[must_use]
    pub const fn was_sent(&self) -> bool {
        match self {
            Self::Protocol { .. } => true,
            Self::Lost { sent, .. } => *sent,
            Self::Configuration { .. }
            | Self::Request { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Proxy { .. }
            | Self::Timeout { .. } => false,
        }
    }
}

/// Returns what to do about an error of TLS whose text does not say it.
fn tls_hint(cause: &io::Error) -> &'static str {
    use rustls::{CertificateError, Error};

    match cause.get_ref().and_then(|cause| cause.downcast_ref()) {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "; trust an authority of your own with `root_certificate` of the connector, or name its \
             file in the environment variable SSL_CERT_FILE"
        }
        // The name is webpki's, whose errors are no part of the interface of rustls.
        Some(Error::InvalidCertificate(error))
            if error.to_string().contains("CaUsedAsEndEntity") =>
        {
            "; the server has the certificate of an authority itself, and needs one that this \
             authority has issued"
        }
        Some(Error::InvalidMessage(_)) => "; does it speak HTTPS?",
        _ => "",
    }
}

// ------------------------------------------------------------------ connect error

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
    #[error("the server at {url} cannot be reached: {cause}")]
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
    #[error("the server at {url} {}", DisplayRefusal(*.status, .challenge.is_some(), .body.as_deref()))]
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
    /// Returns whether another attempt would fail in the same way, until something is changed.
    pub(crate) const fn is_permanent(&self) -> bool {
        match self {
            Self::Url(_)
            | Self::Connector(_)
            | Self::AuthorizationFailed { .. }
            | Self::Unauthorized { .. }
            | Self::NotFound { .. } => true,
            Self::Refused { reason: CloseReason::OpeningFailed(failure), .. } => {
                failure.is_permanent()
            }
            _ => false,
        }
    }

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

/// Displays why a server refused this client, and what to do.
struct DisplayRefusal<'a>(u16, bool, Option<&'a str>);

impl fmt::Display for DisplayRefusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(status, challenged, body) = *self;
        let (refuses, hint) = match (status, challenged) {
            // Some servers mean 401.
            (403, true) => ("denies access", "authorize the host, or ask the server's operator"),
            (403, false) => ("denies access", "ask its operator for the permission or the scope"),
            (_, true) => {
                ("requires authorization", "give the host an `Authorization`, or send a token")
            }
            // As servers do that want an API key.
            (_, false) => (
                "requires authorization",
                "send what it expects in a header field, such as a token or a key",
            ),
        };
        write!(f, "{refuses} (HTTP status {status}){}; {hint}", DisplayBody(body))
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

// ------------------------------------------------------------------ conversion of hyper's errors, grouped by cause

impl ConnectorError {
    /// Converts the error of an exchange that failed before its response head.
    pub(super) fn from_exchange(error: &legacy::Error) -> Self {
        // The dialer's own error, which the pool passes on as a cause.
        if let Some(own) = find::<Self>(error) {
            return own.clone();
        }
        match find::<hyper::Error>(error) {
            _ if error.is_connect() => Self::Lost { reason: innermost(error), sent: false },
            Some(cause) => Self::from_hyper(cause),
            None => Self::Request { reason: innermost(error) },
        }
    }

    /// Converts the error of an exchange whose response has begun.
    pub(super) fn from_body(error: &hyper::Error) -> Self {
        match Self::from_hyper(error) {
            Self::Lost { reason, .. } => Self::Lost { reason, sent: true },
            other => other,
        }
    }

    fn from_hyper(error: &hyper::Error) -> Self {
        let reason = innermost(error);
        if error.is_user() {
            return Self::Request { reason };
        }
        let (own, refused) = h2_stream_error(error);
        if error.is_parse() || own {
            return Self::Protocol { reason };
        }
        // Still queued when the connection ended, so never sent.
        let queued = error.is_canceled() || error.is_closed();
        Self::Lost { reason, sent: !refused && !queued }
    }
}

/// Classifies an HTTP/2 stream error: whether this side detected it, rather than receiving it from
/// the server; and whether the server refused the stream.
#[cfg(feature = "http2")]
fn h2_stream_error(error: &hyper::Error) -> (bool, bool) {
    let Some(error) = find::<h2::Error>(error) else { return (false, false) };
    let own = !error.is_io() && !error.is_remote();
    // RFC 9113 section 8.7: a request refused in this way was not processed by any application.
    (own, error.reason() == Some(h2::Reason::REFUSED_STREAM))
}

#[cfg(not(feature = "http2"))]
const fn h2_stream_error(_: &hyper::Error) -> (bool, bool) {
    (false, false)
}
