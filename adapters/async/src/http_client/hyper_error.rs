//! Conversion of hyper's errors, grouped by cause.

use hyper_util::client::legacy;

use super::ConnectorError;
use super::cause::{find, innermost};

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
