//! Panics of handlers and other functions of the application.

pub use mcp_sansio::PanicGuard;
pub(super) use mcp_sansio::Panicked;
use mcp_sansio::jsonrpc::ErrorObject;

use super::reply::Outcome;

/// What is told of a handler that panicked: nothing of what is inside.
pub(super) const HANDLER_FAILED: &str = "the handler did not finish";

impl From<Panicked> for Outcome {
    fn from(Panicked: Panicked) -> Self {
        Self::Error(ErrorObject::internal(HANDLER_FAILED))
    }
}
