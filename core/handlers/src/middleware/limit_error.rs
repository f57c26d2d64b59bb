use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use core::fmt;
use core::time::Duration;

use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{HttpRejection, Status};

use crate::reply::HandlerError;

/// Why a limit refused a request. `?` converts it into a [`HandlerError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// The caller has sent too many requests: a [`RateLimit`](super::RateLimit). The error is
    /// `-32600` with the time in `data.retryAfterMs`, on HTTP with status 429 and `Retry-After`.
    RateExceeded {
        /// When the next request will be accepted.
        retry_after: Duration,
    },
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateExceeded { retry_after } => {
                write!(f, "too many requests; try again in {retry_after:?}")
            }
        }
    }
}

// It is no `core::error::Error`: any of those would become `HandlerError::Failed`.
impl From<LimitError> for HandlerError {
    fn from(limit: LimitError) -> Self {
        let message = limit.to_string();
        let LimitError::RateExceeded { retry_after } = limit;
        // Rounded up: a client that is told less comes too early.
        let millis = retry_after.as_nanos().div_ceil(1_000_000).min(MILLIS_MAX);
        let data = RawJson::trusted_string(format!(r#"{{"retryAfterMs":{millis}}}"#));
        let seconds = millis.div_ceil(1000).try_into().unwrap_or(u32::MAX);
        let error = ErrorObject::invalid_request(message).with_data(data);
        let refusal = HttpRejection::new(Status::TOO_MANY_REQUESTS, error).retry_after(seconds);
        Self::Refused(Box::new(refusal))
    }
}

/// The largest integer that JSON numbers represent exactly.
const MILLIS_MAX: u128 = (1 << 53) - 1;
