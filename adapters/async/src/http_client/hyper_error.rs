//! The errors of hyper, by whose fault they are.

use hyper_util::client::legacy;

use super::ConnectorError;
use super::cause::{find, innermost};

impl ConnectorError {
    /// Of an exchange that did not come to its response's head.
    pub(super) fn from_exchange(error: &legacy::Error) -> Self {
        // The dialer's own error went through the pool as a cause.
        if let Some(own) = find::<Self>(error) {
            return own.clone();
        }
        match find::<hyper::Error>(error) {
            _ if error.is_connect() => Self::Lost { reason: innermost(error), sent: false },
            Some(cause) => Self::from_hyper(cause),
            None => Self::Request { reason: innermost(error) },
        }
    }

    /// Of an exchange whose response has begun.
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
        // Never begun: it was still in the queue when the connection ended.
        let queued = error.is_canceled() || error.is_closed();
        Self::Lost { reason, sent: !refused && !queued }
    }
}

/// Of a stream of HTTP/2: whether we found something wrong by ourselves, unlike what the server sent us
/// to end the exchange; and whether the server refused it.
#[cfg(feature = "http2")]
fn h2_stream_error(error: &hyper::Error) -> (bool, bool) {
    let Some(error) = find::<h2::Error>(error) else { return (false, false) };
    let own = !error.is_io() && !error.is_remote();
    // RFC 9113 section 8.7: no application has seen a request that is refused in this way.
    (own, error.reason() == Some(h2::Reason::REFUSED_STREAM))
}

#[cfg(not(feature = "http2"))]
const fn h2_stream_error(_: &hyper::Error) -> (bool, bool) {
    (false, false)
}
