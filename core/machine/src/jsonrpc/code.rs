use core::fmt;

use serde::{Deserialize, Serialize};

/// The code of an error response. A peer may send any integer; codes that this side sends must
/// satisfy [`ErrorCode::is_emittable_at`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    // MCP 2026-07-28 basic/index#error-codes [RPC-016]: general failures use the standard codes.
    /// The bytes are not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The message is JSON, but not a valid request.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The receiver does not implement the method.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The parameters are invalid for the method.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// The receiver failed internally.
    pub const INTERNAL_ERROR: Self = Self(-32603);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
