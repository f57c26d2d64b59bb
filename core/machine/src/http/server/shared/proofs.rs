//! Proofs that are used once, at whichever node.

use alloc::collections::VecDeque;
use alloc::string::String;
use core::time::Duration;

use crate::{Caller, Instant};

use super::super::Server;
use super::super::store::StoreAction;
use super::StoreError;
use super::waits::Purpose;

/// Identifies a proof that is being recorded. Ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProofId(u64);

/// The state of proofs on a node.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    last: u64,
    recorded: VecDeque<(ProofId, Result<(), StoreError>)>,
}

impl Server {
    /// Records in the shared store that a caller has used a proof, such as one of possession (RFC
    /// 9449), which must not be used again at any node. `proof` stands for it: a hash, since it may
    /// be long. `ttl` is how long it could be used again. Completed with
    /// [`poll_proof`](Self::poll_proof). Returns `None` without a shared store.
    pub fn record_proof(
        &mut self,
        proof: String,
        ttl: Duration,
        caller: &Caller,
        now: Instant,
    ) -> Option<ProofId> {
        let shared = self.shared_mut()?;
        shared.proofs.last += 1;
        let id = ProofId(shared.proofs.last);
        let account = self.callers.account_of(caller.principal(), None);
        self.ask_store(account, Purpose::Proof(id), now, |action| StoreAction::RecordProof {
            action,
            proof,
            ttl,
        });
        Some(id)
    }

    /// Returns a proof that was recorded or not: [`StoreError::Refused`] if it was used before,
    /// [`StoreError::Unavailable`] if the store cannot tell. Call it until it returns `None`, after
    /// each input, if [`record_proof`](Self::record_proof) was ever called.
    pub fn poll_proof(&mut self) -> Option<(ProofId, Result<(), StoreError>)> {
        self.shared_mut()?.proofs.recorded.pop_front()
    }

    pub(super) fn settle_proof(&mut self, proof: ProofId, result: Result<(), StoreError>) {
        let Some(shared) = self.shared_mut() else { return };
        let result = match result {
            // Each node has those that were used there.
            Err(StoreError::Unavailable) if shared.options.keep_locally => Ok(()),
            result => result,
        };
        shared.proofs.recorded.push_back((proof, result));
    }
}
