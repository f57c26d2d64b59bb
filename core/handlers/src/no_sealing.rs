//! The replacement for `sealing` without the feature `seal`.

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::Request;

use super::reply::Outcome;

/// Seals nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Sealing(());

impl Sealing {
    #[cfg(feature = "http")]
    pub(super) const fn or_default(&self, _: &[u8; 32]) -> Option<Self> {
        None
    }

    pub(super) const fn is_on(&self) -> bool {
        false
    }

    pub(super) const fn open(
        &self,
        _: &mut Request<'_>,
        _: Instant,
    ) -> Result<(), ErrorObject<'static>> {
        Ok(())
    }

    pub(super) fn close(&self, _: &Request<'_>, outcome: Outcome, _: Instant) -> Outcome {
        outcome
    }
}
