use std::io;
use std::sync::Arc;

/// Why an exchange has no response, or its response no end. By whose fault it is; the message is for
/// the user, and has no credentials in it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectorError {
    /// The request cannot be sent as it is: the caller's fault.
    #[error("the request cannot be sent: {reason}")]
    Request {
        /// What is wrong.
        reason: String,
    },
    /// There is no thread for the exchange: too many are under way, or the system is out of threads.
    #[error("no thread for an exchange: {0}")]
    Thread(Arc<io::Error>),
    /// There is no connection to the server: its name is unknown, nobody answers there, not in time,
    /// the proxy refuses, or its certificate is not trusted.
    #[error("cannot connect to {host}: {reason}")]
    Connect {
        /// The server, with its port where it is not the usual one.
        host: String,
        /// What is wrong.
        reason: String,
    },
    /// What the server sends is not HTTP, or goes beyond a limit: the server's fault.
    #[error("the server breaks HTTP: {reason}")]
    Protocol {
        /// What is wrong.
        reason: String,
    },
    /// The connection was lost, or the server broke off the exchange.
    #[error("the connection was lost: {reason}")]
    Lost {
        /// What is known of it.
        reason: String,
    },
}

impl ConnectorError {
    /// Whether the server can have seen the request, and so have acted on it. If not, to send it
    /// once more does no harm.
    #[must_use]
    pub const fn was_sent(&self) -> bool {
        match self {
            Self::Protocol { .. } | Self::Lost { .. } => true,
            Self::Request { .. } | Self::Thread(_) | Self::Connect { .. } => false,
        }
    }

    /// Of an exchange with `host`, for which there was no connection yet if it was `dialing`.
    pub(super) fn of(error: &ureq::Error, host: &str, dialing: bool) -> Self {
        use ureq::Error::{
            BadUri, HostNotFound, Http, InvalidProxyUrl, LargeResponseHeader, Protocol, Timeout,
        };

        let host = || host.to_owned();
        match error {
            // Not its own words: the URL is among them.
            BadUri(_) => Self::Request { reason: "its URL is none".into() },
            Http(error) => Self::Request { reason: error.to_string() },
            InvalidProxyUrl => Self::Request { reason: "the URL of the proxy is none".into() },
            HostNotFound => Self::Connect { host: host(), reason: "there is no such host".into() },
            Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
                Self::Connect { host: host(), reason: "not in time".into() }
            }
            _ if dialing => Self::Connect { host: host(), reason: reason(error) },
            Protocol(_) | LargeResponseHeader(..) => Self::Protocol { reason: reason(error) },
            _ => Self::Lost { reason: reason(error) },
        }
    }

    /// Of an exchange whose response has begun.
    pub(super) fn of_body(error: &io::Error) -> Self {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<ureq::Error>());
        match cause {
            Some(error @ ureq::Error::Protocol(_)) => Self::Protocol { reason: reason(error) },
            Some(error) => Self::Lost { reason: reason(error) },
            None => Self::Lost { reason: error.to_string() },
        }
    }
}

/// What is wrong, without the name of its kind before it.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Protocol(error) => error.to_string(),
        ureq::Error::Rustls(error) => error.to_string(),
        error => error.to_string(),
    }
}
