//! What is answered for functions of the application that panic.

pub use mcp_sansio::PanicGuard;
pub(super) use mcp_sansio::Panicked;
use mcp_sansio::jsonrpc::ErrorObject;

use super::reply::Outcome;

impl From<Panicked> for Outcome {
    fn from(panicked: Panicked) -> Self {
        Self::Error(ErrorObject::from(panicked))
    }
}
