use core::fmt;

use serde::{Deserialize, Serialize};

/// The code of an error answer. A peer may send any integer; what this side sends is held to
/// [`ErrorCode::is_emittable_at`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    // MCP 2026-07-28 basic/index#error-codes [RPC-016]: general failures use the standard codes.
    /// The bytes are not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// JSON, but not a request.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The receiver has no such method.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// The receiver failed for a reason of its own.
    pub const INTERNAL_ERROR: Self = Self(-32603);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
