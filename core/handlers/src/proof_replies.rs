//! Those who wait until the proof of a request is recorded in the store of several nodes.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::task::Waker;

use mcp_sansio::http::{ProofId, StoreError};
use mcp_sansio_sync::Mutex;

use super::machines::HttpServerMachine;

/// The proofs that are being recorded.
#[derive(Debug, Default)]
pub(super) struct ProofReplies(pub(super) BTreeMap<ProofId, Arc<ProofSlot>>);

/// The outcome, once it is known, and who waits for it.
#[derive(Debug, Default)]
pub(super) struct ProofSlot(pub(super) Mutex<(Option<Result<(), StoreError>>, Option<Waker>)>);

impl ProofReplies {
    /// Tells the outcomes that the machine knows.
    pub(super) fn complete_all(&mut self, machine: &mut HttpServerMachine) {
        while let Some((proof, result)) = machine.poll_proof() {
            self.complete(proof, result);
        }
    }

    fn complete(&mut self, proof: ProofId, result: Result<(), StoreError>) {
        let Some(slot) = self.0.remove(&proof) else { return };
        let waker = slot.0.lock(|(outcome, waker)| {
            *outcome = Some(result);
            waker.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
