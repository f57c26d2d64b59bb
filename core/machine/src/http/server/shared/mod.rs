//! Sessions and streams that several nodes share through a store.
//!
//! A node that gets a request for a session of another node opens a replica of it from the store.
//! The number of a replica is a prefix: its streams, and its requests to the client, are numbered
//! after it. An event id or a response thus names its replica.

mod batches;
mod follow;
mod interface;
mod lease;
mod proofs;
mod relay;
mod requests;
mod sessions;
mod task_interface;
mod tasks;
mod waits;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::http::SessionId;

use super::session_ids::SessionIds;
use super::store_queue::Account;

use batches::Batches;
pub(super) use follow::Follow;
pub use interface::{
    ActionId, Lease, MailboxShare, NodeId, SessionRecord, SharedOptions, StoreError, StoreReply,
};
pub use proofs::ProofId;
use proofs::Proofs;
use requests::Parked;
use sessions::Replica;
pub(super) use sessions::{FIRST_REPLICA, first_of, is_standalone};
pub use task_interface::{TaskCommand, TaskKey, TaskMessage, TaskPage, TaskRecord, TaskStoreEvent};
use tasks::SharedTasks;
use waits::Wait;

/// The state of a node.
pub(super) struct Shared {
    options: SharedOptions,
    node: NodeId,
    /// Whether the store knows the node.
    joined: bool,
    /// The number that the store's contents had at the last heartbeat.
    contents: Option<u64>,
    /// Since when this node reaches a store with these contents. Before a lease has passed, the
    /// others may not have reached it again.
    reached: Instant,
    /// When the store was last found to have lost its contents.
    emptied: Option<Instant>,
    /// Whether the last heartbeat succeeded, or none has failed yet.
    available: bool,
    /// Whether a heartbeat is pending.
    beating: bool,
    /// Whether another one is needed after it.
    beats_again: bool,
    /// `None` after the node has left.
    next_heartbeat: Option<Instant>,
    /// The nodes with a valid lease at the last heartbeat.
    nodes: BTreeSet<NodeId>,
    /// The nodes that are being deposed.
    deposing: BTreeSet<NodeId>,
    next_action: u64,
    /// The pending actions, which expire in the order of their ids.
    waits: BTreeMap<ActionId, Wait>,
    /// The sessions that are being opened, with the requests that wait for them.
    openings: BTreeMap<String, Vec<Parked>>,
    /// The sessions that the store does not have, until a heartbeat confirms its contents.
    absent: Vec<String>,
    /// Those for which the pending heartbeat does, because it was sent after they were missed.
    asked: Vec<String>,
    parked: Waiting,
    /// Those of each caller.
    parked_by: BTreeMap<Account, Waiting>,
    /// The session that the current request names and that this node does not have.
    missing: Option<SessionId>,
    /// Whether the current request has waited for its session.
    has_waited: bool,
    /// The session that the current request has opened.
    opened: Option<Key>,
    /// The exchange of the current request, which has waited.
    exchange: Option<Key>,
    /// By the number of the connection.
    replicas: BTreeMap<u64, Replica>,
    /// The numbers of the connections, by the names of their sessions in messages.
    names: BTreeMap<String, u64>,
    /// The effects of batches that the store has not taken yet.
    batches: Batches,
    /// The streams of other nodes that have a reader here.
    following: BTreeMap<(u64, u32), NodeId>,
    /// The nodes that read this node's streams.
    followers: BTreeMap<(u64, u32), BTreeSet<NodeId>>,
    tasks: SharedTasks,
    proofs: Proofs,
}

/// Requests that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waiting {
    count: usize,
    bytes: usize,
}

/// The maximum number of streams with readers on other nodes. As many as exchanges of one process
/// by default; other readers rely on their timer.
const FOLLOWED_MAX: usize = 65_536;

impl Shared {
    pub(super) fn new(options: &SharedOptions, ids: &mut SessionIds) -> Self {
        Self {
            options: options.clone(),
            node: NodeId(ids.draw_number()),
            joined: false,
            contents: None,
            reached: Instant::ZERO,
            emptied: None,
            available: true,
            beating: false,
            beats_again: false,
            next_heartbeat: Some(Instant::ZERO),
            nodes: BTreeSet::new(),
            deposing: BTreeSet::new(),
            next_action: 0,
            waits: BTreeMap::new(),
            openings: BTreeMap::new(),
            absent: Vec::new(),
            asked: Vec::new(),
            parked: Waiting::default(),
            parked_by: BTreeMap::new(),
            missing: None,
            has_waited: false,
            opened: None,
            exchange: None,
            replicas: BTreeMap::new(),
            names: BTreeMap::new(),
            batches: Batches::default(),
            following: BTreeMap::new(),
            followers: BTreeMap::new(),
            tasks: SharedTasks::default(),
            proofs: Proofs::default(),
        }
    }

    /// Returns the next deadline.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let wait = self.waits.first_key_value().map(|(_, wait)| wait.due);
        wait.into_iter().chain(self.next_heartbeat).min()
    }

    /// Takes the exchange of the current request, if it has waited.
    pub(super) const fn take_waiting_exchange(&mut self) -> Option<Key> {
        self.exchange.take()
    }

    /// Returns whether the store knows this node, or the node has left.
    const fn is_known(&self) -> bool {
        self.joined || self.next_heartbeat.is_none()
    }

    /// Returns whether the store has lost its contents, and other nodes may not have stored their
    /// sessions again yet.
    fn is_recovering(&self, now: Instant) -> bool {
        self.emptied.is_some_and(|at| now < at + self.options.lease)
    }

    fn insert_replica(&mut self, key: Key, replica: Replica) {
        self.names.insert(replica.name.clone(), key.to_number());
        self.replicas.insert(key.to_number(), replica);
    }

    pub(super) fn forget_session(&mut self, key: Key) {
        let number = key.to_number();
        if let Some(replica) = self.replicas.remove(&number) {
            self.names.remove(&replica.name);
        }
        self.following.retain(|(session, _), _| *session != number);
        self.followers.retain(|(session, _), _| *session != number);
    }

    pub(super) fn forget_stream(&mut self, key: Key, number: u32) {
        self.following.remove(&(key.to_number(), number));
        self.followers.remove(&(key.to_number(), number));
    }

    /// Checks that the counters match the tables.
    pub(super) fn assert_consistent(&self) {
        let parked = || self.openings.values().flatten();
        let bytes: usize = parked().map(Parked::len).sum();
        let waiting = Waiting { count: parked().count(), bytes };
        assert_eq!(self.parked, waiting, "requests that wait");
        let counts = || self.parked_by.values().map(|by| by.count);
        assert_eq!(counts().sum::<usize>(), waiting.count, "the callers of these requests");
        assert!(counts().all(|count| count > 0), "a caller without requests");
        assert!(waiting.count <= self.options.waiting_max, "the bound on requests");
        assert_eq!(self.names.len(), self.replicas.len(), "the names of sessions");
        assert!(self.followers.len() <= FOLLOWED_MAX, "the bound on followed streams");
        let no_request = self.missing.is_none() && self.exchange.is_none() && !self.has_waited;
        assert!(no_request, "no request is being handled");
    }
}

impl fmt::Debug for Shared {
    /// Omits ids of sessions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("node", &self.node)
            .field("joined", &self.joined)
            .field("available", &self.available)
            .field("replicas", &self.replicas.len())
            .finish_non_exhaustive()
    }
}

impl super::Server {
    /// Returns whether the store answers, for health checks. `true` without a shared store.
    #[must_use]
    pub fn is_store_available(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.available)
    }

    /// Returns whether the store has ever answered, for health checks: before that, a node cannot
    /// open sessions or find those of others. `true` without a shared store.
    #[must_use]
    pub fn has_reached_store(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.contents.is_some())
    }

    /// Returns whether the store has not answered yet that it knows this node, as after the start
    /// or the loss of the lease. Other nodes would take its data for that of a failed node.
    #[must_use]
    pub fn is_joining(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| !shared.is_known() && shared.available)
    }

    /// Returns the id of this node in a shared store. It changes if the node loses its lease.
    #[must_use]
    pub fn node_id(&self) -> Option<NodeId> {
        self.shared.as_ref().map(|shared| shared.node)
    }

    /// Announces the end of this node to the others, when all responses are complete: the queue of
    /// actions gets [`StoreAction::Leave`](super::StoreAction::Leave). Without it they wait until
    /// the lease has expired.
    pub fn leave(&mut self) {
        if let Some(shared) = &mut self.shared {
            (shared.joined, shared.next_heartbeat) = (false, None);
            let node = shared.node;
            self.store.push(Account::Node, super::StoreAction::Leave { node });
        }
    }

    /// Returns the state that is shared. It exists in all methods of this module.
    fn shared_mut(&mut self) -> Option<&mut Box<Shared>> {
        self.shared.as_mut()
    }
}
