//! In place of what seals states, where the feature `seal` is off.

use crate::Principal;
use crate::jsonrpc::ErrorObject;
use crate::peer::Request;

use super::reply::Outcome;

/// Seals nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Sealing(());

impl Sealing {
    pub(super) const fn is_on(&self) -> bool {
        false
    }

    pub(super) const fn open(
        &self,
        _: &mut Request<'_>,
        _: Option<&Principal>,
    ) -> Result<(), ErrorObject<'static>> {
        Ok(())
    }

    pub(super) fn close(
        &self,
        _: &Request<'_>,
        _: Option<&Principal>,
        outcome: Outcome,
    ) -> Outcome {
        outcome
    }
}
