use std::io;
use std::sync::Arc;
use std::time::Duration;

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
    #[error("cannot connect to {host}: {cause}")]
    Connect {
        /// The server, with its port.
        host: String,
        /// The error of the operating system.
        cause: Arc<io::Error>,
    },
    /// The TLS connection to the server failed: its certificate is not trusted, or it does not
    /// speak TLS.
    #[error("no secure connection to {host}: {cause}")]
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
