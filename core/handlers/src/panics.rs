//! What is answered for functions of the application that panic.

use mcp_sansio::jsonrpc::ErrorObject;
pub(super) use mcp_sansio::{PanicGuard, Panicked};

use super::reply::Outcome;

impl From<Panicked> for Outcome {
    fn from(panicked: Panicked) -> Self {
        Self::Error(ErrorObject::from(panicked))
    }
}
