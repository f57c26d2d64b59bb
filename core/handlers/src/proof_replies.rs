//! Requests whose proof is being recorded in the store of several nodes.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::task::Waker;

use mcp_sansio::http::{ProofId, StoreError};
use mcp_sansio_sync::Mutex;

use super::http_server::HttpServerMachine;

/// The proofs that are being recorded.
#[derive(Debug, Default)]
pub(super) struct ProofReplies(pub(super) BTreeMap<ProofId, Arc<ProofSlot>>);

/// The reply to one request to record a proof.
#[derive(Debug, Default)]
pub(super) struct ProofSlot(pub(super) Mutex<ProofReply>);

/// The reply, once it has arrived, and the task that waits for it.
#[derive(Debug, Default)]
pub(super) struct ProofReply {
    pub(super) outcome: Option<Result<(), StoreError>>,
    pub(super) waiting: Option<Waker>,
}

impl ProofReplies {
    /// Tells the outcomes that the machine knows.
    pub(super) fn complete_all(&mut self, machine: &mut HttpServerMachine) {
        while let Some((proof, result)) = machine.poll_proof() {
            self.complete(proof, result);
        }
    }

    fn complete(&mut self, proof: ProofId, result: Result<(), StoreError>) {
        let Some(slot) = self.0.remove(&proof) else { return };
        let waker = slot.0.lock(|reply| {
            reply.outcome = Some(result);
            reply.waiting.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
