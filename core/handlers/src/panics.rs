//! The answer to a request whose handler panicked.

use mcp_sansio::jsonrpc::ErrorObject;
pub(super) use mcp_sansio::{PanicGuard, Panicked};

use super::reply::Outcome;

impl From<Panicked> for Outcome {
    fn from(panicked: Panicked) -> Self {
        Self::Error(ErrorObject::from(panicked))
    }
}
