use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Why an exchange has no response, or its response no end. By whose fault it is; the message
/// is for the user, and has no credentials in it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectorError {
    /// The connector cannot be built as asked: the caller's fault.
    #[error("{reason}")]
    Configuration {
        /// What is wrong.
        reason: String,
    },
    /// The request cannot be sent as it is: the caller's fault.
    #[error("the request cannot be sent: {reason}")]
    Request {
        /// What is wrong.
        reason: String,
    },
    /// There is no connection to the server: its name is unknown, or nobody answers there.
    #[error("cannot connect to {host}: {cause}")]
    Connect {
        /// The server, with its port.
        host: String,
        /// What the system says.
        cause: Arc<io::Error>,
    },
    /// There is no secure connection to the server: its certificate is not trusted, or it does not
    /// speak TLS.
    #[error("no secure connection to {host}: {cause}")]
    Tls {
        /// The server, with its port.
        host: String,
        /// What is wrong; where it was TLS that failed, a `rustls::Error` is inside.
        cause: Arc<io::Error>,
    },
    /// The proxy does not bring us to the server: it is not there, or it refuses.
    #[error("no connection by way of the proxy {proxy}: {reason}")]
    Proxy {
        /// The proxy, with its port.
        proxy: String,
        /// What is wrong.
        reason: String,
    },
    /// The connection was not there in time, TLS and proxies included.
    #[error("no connection to {host} within {after:?}")]
    Timeout {
        /// The server, with its port.
        host: String,
        /// How long was waited.
        after: Duration,
    },
    /// What the server sends is not HTTP, or goes beyond a limit: the server's fault.
    #[error("the server breaks HTTP: {reason}")]
    Protocol {
        /// What is wrong.
        reason: String,
    },
    /// The connection was lost, or the server broke off the exchange. With TLS 1.3 this is also how a
    /// server refuses a client's certificate: it says so after the handshake.
    #[error("the connection was lost: {reason}")]
    Lost {
        /// What is known of it.
        reason: String,
        /// Whether the request can have reached the server.
        sent: bool,
    },
}

impl ConnectorError {
    /// Whether the server can have seen the request, and so have acted on it. If not, to send it
    /// once more does no harm.
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
