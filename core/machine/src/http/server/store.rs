//! The interface to the external event store: its actions and their results.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use mcp_sansio_collections::Key;

use crate::Principal;
use crate::http::SessionId;
use crate::peer;
use crate::peer::outbox::Channel;

use super::ServerLimits;
use super::sessions::Session;
use super::shared::{ActionId, MailboxShare, NodeId, SharedOptions, TaskKey, TaskRecord};
#[cfg(doc)]
use super::shared::{StoreError, StoreReply};
use super::store_queue::{Account, StoreQueue, length_of};
use super::stream::Stream;

/// Where events are kept for clients that resume a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventStore {
    /// In the machine, within the [`ServerLimits`].
    #[default]
    Memory,
    /// Recent events in the machine, within the same limits, and all events in a store of the
    /// deployment that executes the actions of [`Server::poll_store`](super::Server::poll_store).
    /// Use it only with a driver that polls them: otherwise the actions fill up their queue.
    ///
    /// The store keeps the messages of sessions, not the sessions, which end with the machine.
    External,
    /// As `External`, and all nodes of a deployment share their sessions and streams through the
    /// store: see [`HttpServerOptions::shared`](super::HttpServerOptions::shared), which selects
    /// it.
    Shared,
}

/// The position of an event: its session, stream, number and principal.
///
/// A store must use all four parts as the key of the event. Otherwise it could return one client's
/// event to another.
// MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-002] [RESUME-003]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPosition {
    /// The session. Its id is a secret: a store may keep a hash of it instead, and return the id
    /// with which it was queried if the hashes match.
    pub session: SessionId,
    /// The number of the stream within the session. Numbers are never reused.
    pub stream: u32,
    /// The number of the event within the stream. Numbers are consecutive and start at 0.
    pub sequence: u64,
    /// The principal of the session, if known.
    pub principal: Option<Principal>,
}

/// A stored event.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEvent {
    /// The position of the event.
    pub position: EventPosition,
    /// The message as JSON; empty if the event only gave the client an id for resuming.
    ///
    /// Such events are stored too, so that only lost events leave gaps in the numbers. In a shared
    /// store, the first event of a stream has the ids of the requests that the stream answers.
    pub message: Vec<u8>,
    /// Whether it is the last event of its stream. A shared store keeps this flag; others may
    /// ignore it.
    pub last: bool,
}

impl StoredEvent {
    /// Creates an event from its position and its message.
    #[must_use]
    pub const fn new(position: EventPosition, message: Vec<u8>) -> Self {
        Self { position, message, last: false }
    }

    /// Marks the event as the last one of its stream.
    #[must_use]
    pub const fn last(mut self) -> Self {
        self.last = true;
        self
    }
}

impl fmt::Debug for StoredEvent {
    /// Omits the message, because logs have many readers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.message.len();
        f.debug_struct("StoredEvent")
            .field("position", &self.position)
            .field("message_length", &length)
            .finish()
    }
}

/// Identifies a read of a [`Server`](super::Server). Ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadId {
    pub(crate) connection: Key,
    pub(crate) stream: u32,
    pub(crate) number: u64,
}

/// An action for an external store, or for one that several nodes share.
///
/// The variants after `Forget` are for a shared store ([`EventStore::Shared`]). Those with an
/// `action` are completed with [`Server::handle_store`](super::Server::handle_store), each once.
/// Many may be executed at the same time; those of one node and one session must take effect in
/// their order, and so must the messages from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreAction {
    /// Store an event.
    ///
    /// A shared store refuses it if the stream has an event with the same or a higher number, or a
    /// last event, or if its session was [removed](Self::RemoveSession), and then calls
    /// [`Server::handle_append_refused`](super::Server::handle_append_refused): another node has
    /// ended the stream. Check and append are one atomic step. After any other outcome it calls
    /// [`Server::handle_appended`](super::Server::handle_appended), which matters only if
    /// [`SharedOptions::durable`] is set.
    Append {
        /// The event. No event is stored at its position yet.
        event: StoredEvent,
    },
    /// Read the events of one stream from a position on, and pass them to
    /// [`Server::handle_stored`](super::Server::handle_stored).
    Read {
        /// Identifies the read in its result.
        read: ReadId,
        /// The position of the first requested event.
        from: EventPosition,
        /// The maximum number of events used from the result.
        events_max: usize,
        /// The maximum number of message bytes used from the result, not counting its first
        /// event, which is used regardless of its length.
        bytes_max: usize,
    },
    /// Remove all events of a stream or session: no client can resume it.
    ///
    /// A machine that ends abruptly sends no such action, so a store should also expire entries a
    /// while after [`ServerTimeouts::session_idle`](super::ServerTimeouts::session_idle).
    Forget {
        /// The session.
        session: SessionId,
        /// The stream; `None` for all streams of the session.
        stream: Option<u32>,
        /// The principal of the session.
        principal: Option<Principal>,
    },
    /// Extend the lease of a node to `lease` from now, by the clock of the store, and complete with
    /// [`StoreReply::Lease`]. A lease that has expired is extended as well, unless another node
    /// has deposed the node.
    Heartbeat {
        /// Identifies the action.
        action: ActionId,
        /// The node.
        node: NodeId,
        /// The duration of the lease.
        lease: Duration,
        /// Whether to register the node if the store does not know it.
        joins: bool,
        /// The number that identifies the contents of the store from now on, if it is empty.
        contents: u64,
    },
    /// Remove a node that ends. Not completed.
    Leave {
        /// The node.
        node: NodeId,
    },
    /// Remove a node if its lease has expired, in one atomic step, and complete with
    /// [`StoreReply::Deposed`]: `true` if the store does not know the node (any more), `false` if it
    /// has lost its contents, because it may not know the node yet.
    Depose {
        /// Identifies the action.
        action: ActionId,
        /// The node.
        node: NodeId,
        /// The number of the contents for which this holds.
        contents: u64,
    },
    /// Set the fields of a session, and create it if it does not exist; add the replica, extend the
    /// expiry, and complete with [`StoreReply::Done`], or with [`StoreError::Missing`] if the
    /// session was [removed](Self::RemoveSession).
    PutSession {
        /// Identifies the action.
        action: ActionId,
        /// The session.
        session: SessionId,
        /// The number of this node's replica.
        replica: u32,
        /// Replicas that are opened later get higher numbers than this.
        taken: u32,
        /// How many more numbers they skip if the store does not have the replica yet: it may have
        /// lost the session, with replicas that this node does not know.
        skipped: u32,
        /// The node.
        node: NodeId,
        /// The fields.
        fields: Vec<(String, String)>,
        /// How long the session is kept after its last use.
        idle: Duration,
    },
    /// Add a replica to a session, extend its expiry, and complete with [`StoreReply::Opened`] or
    /// [`StoreError::Missing`]. The replica gets the next number of the session, at least 1. One
    /// atomic step.
    OpenSession {
        /// Identifies the action.
        action: ActionId,
        /// The session.
        session: SessionId,
        /// The node of the replica.
        node: NodeId,
        /// How long the session is kept after its last use.
        idle: Duration,
    },
    /// Read a session, and complete with [`StoreReply::Opened`], whose replica is 0, or
    /// [`StoreError::Missing`]. It changes nothing, and does not extend the expiry.
    ReadSession {
        /// Identifies the action.
        action: ActionId,
        /// The session.
        session: SessionId,
    },
    /// Set or remove fields of a session, extend its expiry, and complete with
    /// [`StoreReply::Done`] or [`StoreError::Missing`]. Without fields, only extend the expiry.
    SetFields {
        /// Identifies the action.
        action: ActionId,
        /// The session.
        session: SessionId,
        /// The fields with their values; `None` removes a field.
        fields: Vec<(String, Option<String>)>,
        /// How long the session is kept after its last use.
        idle: Duration,
    },
    /// Remove a session, its streams and its tasks, and complete with [`StoreReply::Done`].
    ///
    /// Other nodes may not know the end yet: for a while the store refuses the events of the
    /// session, its tasks, and to store it again.
    RemoveSession {
        /// Identifies the action.
        action: ActionId,
        /// The session.
        session: SessionId,
        /// The [requestor](TaskKey::requestor) whose tasks end with the session. `None` if its
        /// tasks belong to a principal.
        requestor: Option<String>,
        /// How long the store refuses writes to the session.
        refused_for: Duration,
    },
    /// Record that a proof was used, and complete with [`StoreReply::Done`], or with
    /// [`StoreError::Refused`] if it is recorded. One atomic step.
    RecordProof {
        /// Identifies the action.
        action: ActionId,
        /// Identifies the proof.
        proof: String,
        /// How long it is kept.
        ttl: Duration,
    },
    /// Store a task, and complete with [`StoreReply::Done`]. Its record counts against
    /// [`ServerLimits::store_bytes_max`]. One atomic step refuses it with
    /// [`StoreError::Refused`] if the store has the task and it has ended, or its node is another
    /// one than that of the new record, or if the session that it belongs to was
    /// [removed](Self::RemoveSession).
    PutTask {
        /// Identifies the action.
        action: ActionId,
        /// The task.
        key: TaskKey,
        /// The record, which replaces the present one.
        record: TaskRecord,
        /// How long the task is kept from now on. `None`: replace an existing record only, whose
        /// expiry does not change, or complete with [`StoreError::Missing`].
        ttl: Option<Duration>,
        /// Whether [`ListTasks`](Self::ListTasks) returns the task.
        listed: bool,
    },
    /// Read a task, and complete with [`StoreReply::Task`] or [`StoreError::Missing`].
    ReadTask {
        /// Identifies the action.
        action: ActionId,
        /// The task.
        key: TaskKey,
    },
    /// List the tasks of a requestor, in an order that stays, and complete with
    /// [`StoreReply::Tasks`], or with [`StoreError::Missing`] if the cursor is malformed.
    ListTasks {
        /// Identifies the action.
        action: ActionId,
        /// The requestor.
        requestor: String,
        /// Where the page begins: [`TaskPage::next`](super::TaskPage::next) of the page before.
        cursor: Option<String>,
        /// The maximum number of tasks.
        tasks_max: usize,
    },
    /// Send a message to a node, or to all other nodes if `to` is `None`, whose machines take it
    /// with [`Server::handle_node_message`](super::Server::handle_node_message). Complete with
    /// [`StoreReply::Done`] when the store has taken it, if there is an `action`.
    ///
    /// A store removes a message when its receiver has read it. A message to one node that exceeds
    /// the `share` is refused with [`StoreError::Unavailable`]; one to all is not sent to those
    /// nodes where it does.
    Send {
        /// Identifies the action.
        action: Option<ActionId>,
        /// The sending node, whose own message is not for itself.
        from: NodeId,
        /// The receiver.
        to: Option<NodeId>,
        /// The message, at most [`SharedOptions::mailbox_bytes_per_caller_max`] bytes.
        message: Vec<u8>,
        /// Its share of the messages that wait for each receiver.
        share: MailboxShare,
    },
}

/// The store does not have the requested events, or cannot be reached. The client is told that the
/// events are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store does not have these events")]
pub struct NotStored;

/// The actions that wait for the store.
#[derive(Debug)]
pub(super) struct Store {
    external: bool,
    /// Whether other nodes read the events.
    shared: bool,
    /// Whether clients get events only when they are stored.
    durable: bool,
    queue: StoreQueue,
    reads: u64,
    dropped: u64,
}

impl Store {
    pub(super) fn new(
        kind: EventStore,
        shared: Option<&SharedOptions>,
        limits: &ServerLimits,
    ) -> Self {
        Self {
            external: !matches!(kind, EventStore::Memory),
            shared: matches!(kind, EventStore::Shared),
            durable: shared.is_some_and(|shared| shared.durable),
            queue: StoreQueue::new(limits),
            reads: 0,
            dropped: 0,
        }
    }

    pub(super) const fn is_external(&self) -> bool {
        self.external
    }

    pub(super) const fn is_durable(&self) -> bool {
        self.durable
    }

    /// Returns the number of actions dropped because the queue was full.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns whether a read, or an event without a message, can be queued.
    pub(super) fn has_room(&self, account: Account) -> bool {
        self.queue.has_room(account, 0)
    }

    pub(super) fn has_actions(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(super) fn next_action(&mut self) -> Option<StoreAction> {
        self.queue.pop()
    }

    /// Stores the events of a stream since the last call: only ids, except for the last event,
    /// which has this message.
    ///
    /// If the queue is full, an event is missing from then on. Its number is not reused, so a later
    /// read detects the gap and its client is told.
    // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-001] [RESUME-006]
    pub(super) fn record(
        &mut self,
        session: &mut Session,
        machine: &peer::Server,
        stream: &mut Stream,
        message: &[u8],
    ) {
        if !self.external || !stream.resumable {
            return;
        }
        let principal = machine.caller().principal();
        let next = stream.log.next_sequence();
        if self.durable && stream.recorded == 0 {
            stream.stored = 0;
        }
        while stream.recorded < next {
            let sequence = stream.recorded;
            stream.recorded += 1;
            let message = if stream.recorded == next { message } else { b"" };
            let last = self.shared && stream.done && stream.recorded == next;
            let ids = if self.shared && sequence == 0 && message.is_empty() {
                machine.write_ids_on(Channel(stream.number))
            } else {
                String::new()
            };
            let message = if ids.is_empty() { message } else { ids.as_bytes() };
            if !self.queue.has_room(session.account, message.len()) {
                self.dropped += 1;
                if self.durable {
                    stream.stored = stream.recorded;
                }
                continue;
            }
            session.recorded = true;
            let position = EventPosition {
                session: session.id,
                stream: stream.number,
                sequence,
                principal: principal.cloned(),
            };
            let event = StoredEvent { position, message: message.to_vec(), last };
            self.queue.push(session.account, StoreAction::Append { event });
        }
        if self.shared {
            // A reader on another node may have sent them.
            stream.issue_all();
        }
    }

    /// Queues an action for a shared store. Returns whether there was room.
    pub(super) fn push(&mut self, account: Account, action: StoreAction) -> bool {
        let pushed = self.queue.push(account, action);
        self.dropped += u64::from(!pushed);
        pushed
    }

    /// Queues a read of a stream from a position on, of at most `events_max` events. Returns `None`
    /// if the queue is full.
    pub(super) fn read(
        &mut self,
        (account, connection): (Account, Key),
        from: EventPosition,
        events_max: usize,
        limits: &ServerLimits,
    ) -> Option<ReadId> {
        let read = ReadId { connection, stream: from.stream, number: self.reads };
        self.reads += 1;
        let bytes_max = limits.store_page_bytes_max;
        let action = StoreAction::Read { read, from, events_max, bytes_max };
        self.push(account, action).then_some(read)
    }

    /// Queues the removal of a stream or a session, if any of its events was stored.
    pub(super) fn forget(
        &mut self,
        session: &Session,
        stream: Option<u32>,
        principal: Option<&Principal>,
    ) {
        // The streams of a shared session end with it in the store.
        if !session.recorded || self.shared && stream.is_none() {
            return;
        }
        let principal = principal.cloned();
        let action = StoreAction::Forget { session: session.id, stream, principal };
        self.push(session.account, action);
    }

    /// Checks that the counters match the queue.
    pub(super) fn assert_consistent(&self) {
        self.queue.assert_consistent();
        assert!(self.external || self.queue.is_empty(), "there is no store");
    }
}

impl StoreAction {
    /// Returns about how many bytes the action holds, for drivers that execute several at a time.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        length_of(self)
    }
}
