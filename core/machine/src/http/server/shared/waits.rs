//! Actions of the store that wait for their result.

use alloc::vec::Vec;

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::http::{Response, SessionId};

use super::super::Server;
use super::super::exchange::State;
use super::super::reader::busy;
use super::super::store::StoreAction;
use super::super::store_queue::Account;
use super::proofs::ProofId;
use super::sessions::Stored;
use super::tasks::TaskPurpose;
use super::{ActionId, NodeId, StoreError, StoreReply};

/// A pending action.
#[derive(Debug)]
pub(super) struct Wait {
    pub(super) due: Instant,
    purpose: Purpose,
}

/// The reason for an action.
#[derive(Debug)]
pub(super) enum Purpose {
    /// The lease of this node.
    Heartbeat,
    /// A session that another node has opened, for the requests that wait for it.
    Read(SessionId),
    /// A replica of that session.
    Open(SessionId),
    /// A session of this node, and the response that opens it.
    Put { session: Key, held: Option<Held> },
    /// A change of a session, and the response that confirms it.
    Change { session: Key, held: Option<Held> },
    /// A message to other nodes, and the response that confirms it.
    Relay(Option<Held>),
    /// The nodes of a session, to which a message goes.
    Owners { session: Key, message: Vec<u8> },
    /// One effect of a batch, whose response is confirmed when all its effects are stored.
    Part { batch: u64, session: Key, is_change: bool },
    /// The end of a node.
    Depose(NodeId),
    /// A proof that is used once.
    Proof(ProofId),
    /// A task.
    Task(TaskPurpose),
}

/// A complete response that waits.
#[derive(Debug)]
pub(super) struct Held {
    exchange: Key,
    response: Response,
}

impl Held {
    /// Replaces the response, because the store is not available.
    pub(super) fn refused(self) -> Self {
        Self { response: unavailable(), ..self }
    }
}

const UNAVAILABLE: &str = "the store of sessions is not available";

pub(super) fn unavailable() -> Response {
    busy(None, UNAVAILABLE)
}

impl Server {
    /// Queues an action whose result matters.
    pub(super) fn ask_store(
        &mut self,
        account: Account,
        purpose: Purpose,
        now: Instant,
        action: impl FnOnce(ActionId) -> StoreAction,
    ) {
        let Some(shared) = &mut self.shared else { return };
        let id = ActionId(shared.next_action);
        shared.next_action += 1;
        if !self.store.push(account, action(id)) {
            return self.settle(purpose, Err(StoreError::Unavailable), now);
        }
        let due = now + shared.options.patience;
        shared.waits.insert(id, Wait { due, purpose });
    }

    /// Handles the result of an action. It is ignored if the action is no longer pending.
    pub fn handle_store(
        &mut self,
        action: ActionId,
        result: Result<StoreReply, StoreError>,
        now: Instant,
    ) {
        let wait = self.shared_mut().and_then(|shared| shared.waits.remove(&action));
        if let Some(wait) = wait {
            self.settle(wait.purpose, result, now);
        }
    }

    /// Handles the deadlines that are due.
    pub(in super::super) fn handle_shared_timeout(&mut self, now: Instant) {
        while let Some(shared) = &mut self.shared
            && let Some(first) = shared.waits.first_entry()
            && first.get().due <= now
        {
            let purpose = first.remove().purpose;
            self.settle(purpose, Err(StoreError::Unavailable), now);
        }
        let next = self.shared.as_ref().and_then(|shared| shared.next_heartbeat);
        if next.is_some_and(|next| next <= now) {
            self.beat(now);
        }
    }

    fn settle(&mut self, purpose: Purpose, result: Result<StoreReply, StoreError>, now: Instant) {
        match purpose {
            Purpose::Heartbeat => match result {
                Ok(StoreReply::Lease(lease)) => self.handle_lease(lease, now),
                _ => self.handle_silence(now),
            },
            Purpose::Read(session) => match result {
                Ok(StoreReply::Opened(record)) => self.handle_read(&session, record, now),
                Err(StoreError::Missing) => self.handle_absence(&session, now),
                _ => self.refuse_parked(&session),
            },
            Purpose::Open(session) => match result {
                Ok(StoreReply::Opened(record)) => self.handle_record(&session, record, now),
                Err(StoreError::Missing) => self.handle_absence(&session, now),
                _ => self.refuse_parked(&session),
            },
            // Its client has ended it at another node.
            Purpose::Put { session, held } if result == Err(StoreError::Missing) => {
                self.end_removed(session, now);
                self.release_all(held);
            }
            Purpose::Put { session, held } => {
                let stored = result.is_ok();
                self.set_stored(session, if stored { Stored::Yes } else { Stored::No });
                let keeps = self.shared_mut().is_some_and(|shared| shared.options.keep_locally);
                match held {
                    Some(held) if !stored && !keeps => {
                        // The store may have it all the same.
                        self.end_shared_session(session, now);
                        self.release(held.refused());
                    }
                    held => self.release_all(held),
                }
            }
            Purpose::Change { session, held } => {
                self.settle_change(session, &result, now);
                self.release_all(held);
            }
            Purpose::Relay(held) => {
                let held = match result {
                    // The receiver has gone, and with it the request.
                    Ok(_) | Err(StoreError::Missing) => held,
                    Err(_) => held.map(Held::refused),
                };
                self.release_all(held);
            }
            // A message without a confirmation may be lost.
            Purpose::Owners { session, message } => {
                if let Ok(StoreReply::Opened(record)) = result {
                    self.adopt_owners(session, record.owners);
                    self.send_to_owners(session, &message);
                }
            }
            Purpose::Part { batch, session, is_change } => {
                self.settle_part(batch, session, (is_change, result), now);
            }
            Purpose::Proof(proof) => self.settle_proof(proof, result.map(drop)),
            Purpose::Task(purpose) => self.settle_task(purpose, result, now),
            Purpose::Depose(node) => {
                self.handle_deposed(node, matches!(result, Ok(StoreReply::Deposed(true))), now);
            }
        }
    }

    /// Handles the outcome of a change to a session.
    pub(super) fn settle_change(
        &mut self,
        session: Key,
        result: &Result<StoreReply, StoreError>,
        now: Instant,
    ) {
        match result {
            Ok(_) => {}
            Err(StoreError::Missing) => self.doubt(session, now),
            // The next heartbeat stores the session again.
            Err(_) => self.set_stored(session, Stored::No),
        }
    }

    /// Holds a complete response back until an action is completed.
    pub(super) fn hold(&mut self, exchange: Key) -> Option<Held> {
        let entry = self.exchanges.get_mut(exchange)?;
        match core::mem::replace(&mut entry.state, State::Waiting) {
            State::Whole(response) => Some(Held { exchange, response }),
            other => {
                entry.state = other;
                None
            }
        }
    }

    pub(super) fn release_all(&mut self, held: Option<Held>) {
        if let Some(held) = held {
            self.release(held);
        }
    }

    fn release(&mut self, held: Held) {
        if let Some(entry) = self.exchanges.get_mut(held.exchange) {
            entry.state = State::Whole(held.response);
            self.make_ready(held.exchange);
        }
    }
}
