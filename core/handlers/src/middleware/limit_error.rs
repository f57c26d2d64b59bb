#[cfg(feature = "http")]
use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use core::fmt;
use core::time::Duration;

#[cfg(feature = "http")]
use mcp_sansio::http::{HttpRejection, Status};
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};

use crate::reply::HandlerError;

/// Why a limit refused or ended a request. `?` converts it into a [`HandlerError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// The handler took longer than this: a [`Timeout`](super::Timeout). The work failed, so the
    /// model sees it if it was a tool's; otherwise an internal error, `-32603`.
    TimedOut(Duration),
    /// The caller has sent too many requests: a [`RateLimit`](super::RateLimit). The error is
    /// `-32600` with the time in `data.retryAfterMs`, on HTTP with status 429 and `Retry-After`.
    RateExceeded {
        /// When the next request will be accepted.
        retry_after: Duration,
    },
    /// Too many requests are running and waiting: a [`ConcurrencyLimit`](super::ConcurrencyLimit).
    /// The error is `-32600`, on HTTP with status 503.
    Busy,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(after) => write!(f, "the request took longer than {after:?}"),
            Self::RateExceeded { retry_after } => {
                write!(f, "too many requests; try again in {retry_after:?}")
            }
            Self::Busy => f.write_str("too many requests are in progress; try again later"),
        }
    }
}

// It is no `core::error::Error`: any of those would become `HandlerError::Failed`.
impl From<LimitError> for HandlerError {
    fn from(limit: LimitError) -> Self {
        let message = limit.to_string();
        let error = || ErrorObject::invalid_request(message.clone());
        match limit {
            LimitError::TimedOut(_) => Self::Failed(message),
            LimitError::RateExceeded { retry_after } => {
                // Rounded up: a client that is told less comes too early.
                let millis = retry_after.as_nanos().div_ceil(1_000_000).min(MILLIS_MAX);
                let data = RawJson::trusted_string(format!(r#"{{"retryAfterMs":{millis}}}"#));
                let seconds = millis.div_ceil(1000).try_into().unwrap_or(u32::MAX);
                refusal(error().with_data(data), Kind::TooManyRequests(seconds))
            }
            LimitError::Busy => refusal(error(), Kind::Unavailable),
        }
    }
}

/// The largest integer that JSON numbers represent exactly.
const MILLIS_MAX: u128 = (1 << 53) - 1;

/// The HTTP response of a refusal.
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has statuses"))]
enum Kind {
    TooManyRequests(u32),
    Unavailable,
}

#[cfg(feature = "http")]
fn refusal(error: ErrorObject<'static>, kind: Kind) -> HandlerError {
    HandlerError::Refused(Box::new(match kind {
        Kind::TooManyRequests(seconds) => {
            HttpRejection::new(Status::TOO_MANY_REQUESTS, error).retry_after(seconds)
        }
        Kind::Unavailable => HttpRejection::new(Status::SERVICE_UNAVAILABLE, error),
    }))
}

#[cfg(not(feature = "http"))]
fn refusal(error: ErrorObject<'static>, _: Kind) -> HandlerError {
    HandlerError::Protocol(error)
}
