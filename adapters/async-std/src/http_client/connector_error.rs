use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy;

/// Why an exchange has no response, or its response no end. By whose fault it is; the message is
/// for the user, and has no credentials in it.
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
        /// What is wrong; where it was TLS that failed, a [`rustls::Error`] is inside.
        cause: Arc<io::Error>,
    },
    /// The connection was not there in time, TLS included.
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
            | Self::Timeout { .. } => false,
        }
    }

    /// Of an exchange that did not come to its response's head.
    pub(super) fn of_exchange(error: &legacy::Error) -> Self {
        // The dialer's own error went through the pool as a cause.
        if let Some(own) = find::<Self>(error) {
            return own.clone();
        }
        match find::<hyper::Error>(error) {
            _ if error.is_connect() => Self::Lost { reason: innermost(error), sent: false },
            Some(cause) => Self::of_hyper(cause),
            None => Self::Request { reason: innermost(error) },
        }
    }

    /// Of an exchange whose response has begun.
    pub(super) fn of_body(error: &hyper::Error) -> Self {
        match Self::of_hyper(error) {
            Self::Lost { reason, .. } => Self::Lost { reason, sent: true },
            other => other,
        }
    }

    fn of_hyper(error: &hyper::Error) -> Self {
        let reason = innermost(error);
        if error.is_user() {
            return Self::Request { reason };
        }
        if error.is_parse() {
            return Self::Protocol { reason };
        }
        // Never begun: it was still in the queue when the connection ended.
        let queued = error.is_canceled() || error.is_closed();
        Self::Lost { reason, sent: !queued }
    }
}

/// The first cause of type `T`, `error` itself included.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// What the last of the causes says: the others say at which step it happened.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}
