//! The types with which a server shares its state with other nodes.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::Instant;

use super::super::Server;
use super::{TaskKey, TaskPage, TaskRecord};

/// Identifies a node, from its start or from the loss of its lease to its end: 64 random bits,
/// never reused. Written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u64);

impl NodeId {
    /// Parses the text that [`Display`](fmt::Display) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let canonical = text.len() == 16 && text.bytes().all(is_digit);
        canonical.then(|| u64::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Identifies an action that is completed with
/// [`Server::handle_store`](super::super::Server::handle_store). Ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub(super) u64);

/// The result that a shared store returns for an action.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreReply {
    /// The action was executed. For an action whose variant names no other result.
    Done,
    /// The result of a heartbeat.
    Lease(Lease),
    /// The result of opening or reading a session.
    Opened(SessionRecord),
    /// Whether a node is deposed: now or before.
    Deposed(bool),
    /// The result of reading a task.
    Task(TaskRecord),
    /// The result of listing tasks.
    Tasks(TaskPage),
}

/// The result of a [heartbeat](super::super::StoreAction::Heartbeat).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// Whether the lease was extended. `false`: the store does not know the node, because it was
    /// deposed or the store lost its contents, and the node did not join.
    pub held: bool,
    /// The number that identifies the contents of the store: the first one proposed to it since it
    /// was last empty.
    pub contents: u64,
    /// The nodes with a valid lease, in any order.
    pub nodes: Vec<NodeId>,
}

impl Lease {
    /// Creates the result of a heartbeat from its parts.
    #[must_use]
    pub const fn new(held: bool, contents: u64, nodes: Vec<NodeId>) -> Self {
        Self { held, contents, nodes }
    }
}

/// A session in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionRecord {
    /// The number of the new replica, unique in the session; 0 if it was only read.
    pub replica: u32,
    /// The nodes of all replicas, by the numbers of these, in any order.
    pub owners: Vec<(u32, NodeId)>,
    /// The fields and their values, in any order.
    pub fields: Vec<(String, String)>,
}

impl SessionRecord {
    /// Creates a record from its parts.
    #[must_use]
    pub const fn new(
        replica: u32,
        owners: Vec<(u32, NodeId)>,
        fields: Vec<(String, String)>,
    ) -> Self {
        Self { replica, owners, fields }
    }
}

/// The share of a message among those that wait for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MailboxShare {
    /// Identifies, on all nodes, the caller whose request caused the message; empty for a message
    /// of the node itself.
    pub caller: String,
    /// The maximum number of bytes of all messages that wait for the receiver, with this one.
    pub bytes_max: usize,
    /// The maximum number of bytes of those with the same `caller`, with this one.
    pub caller_bytes_max: usize,
}

impl MailboxShare {
    /// Creates a share from its parts.
    #[must_use]
    pub const fn new(caller: String, bytes_max: usize, caller_bytes_max: usize) -> Self {
        Self { caller, bytes_max, caller_bytes_max }
    }
}

/// Why an action of a shared store failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store has no such session, node, task or cursor.
    #[error("the store has no such entry")]
    Missing,
    /// The store cannot be reached, is out of memory, or did not answer in time. The action may or
    /// may not have been executed.
    #[error("the store is not available")]
    Unavailable,
    /// A task has ended in the store, or belongs to another node.
    #[error("another node has ended this task")]
    Refused,
}

/// How a server shares its sessions and streams with other nodes: see
/// [`HttpServerOptions::shared`](super::super::HttpServerOptions::shared).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SharedOptions {
    /// How long a node may be silent before others may end its requests. 15 s: a pause of a
    /// process or a failover of the store usually takes less. A node extends its lease three times
    /// in this interval.
    pub lease: Duration,
    /// How long an action may take before the server continues without its result. 5 s: a client
    /// waits for it.
    pub patience: Duration,
    /// How often a reader looks for new events of another node's stream without being notified.
    /// 1 s: notifications are rarely lost.
    pub poll: Duration,
    /// Whether a client gets an event of a stream only after the store has it. `false`: it gets the
    /// event at once, and a crash of the node in this moment forgets the event for other nodes.
    /// With `true`, each event waits for a round trip to the store; if that fails, it is sent
    /// nevertheless. Answers as JSON are no events.
    pub durable: bool,
    /// Whether this node keeps new sessions to itself while the store is not available. `false`:
    /// they are refused with 503 and `Retry-After`. With `true`, other nodes answer their requests
    /// with 503 or 404 until the store is available again.
    pub keep_locally: bool,
    /// Requests that wait for the store, in total. 10,000: further requests are answered with 503.
    pub waiting_max: usize,
    /// Bytes in the bodies of these requests. 64 MiB.
    pub waiting_bytes_max: usize,
    /// Requests of one caller among those that wait. 2,500: a quarter of all, as for sessions.
    /// Callers of whom neither a principal nor an address is known have one share together.
    pub waiting_per_caller_max: usize,
    /// Bytes in the bodies of these requests of one caller. 16 MiB: four bodies of the maximum
    /// length.
    pub waiting_bytes_per_caller_max: usize,
    /// Bytes of messages that wait in the store for one node. 32 MiB: eight bodies of the maximum
    /// length. Messages caused by clients may use seven eighths of it; the rest is for messages of
    /// the nodes themselves. The store holds at most as much for each node with a lease. Beyond it
    /// a client's answer is refused with 503, and other messages are not sent.
    pub mailbox_bytes_max: usize,
    /// Bytes of these messages that requests of one caller cause. 8 MiB: two bodies of the maximum
    /// length.
    pub mailbox_bytes_per_caller_max: usize,
    /// [`Server::tell_listeners`], which decodes tasks. Only these options refer to it, so that the
    /// image of a device does not contain it: 67 KB.
    pub(super) tell_listeners: fn(&mut Server, &TaskKey, &TaskRecord, Instant),
}

impl Default for SharedOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            patience: Duration::from_secs(5),
            poll: Duration::from_secs(1),
            durable: false,
            keep_locally: false,
            waiting_max: 10_000,
            waiting_bytes_max: 64 * 1024 * 1024,
            waiting_per_caller_max: 2_500,
            waiting_bytes_per_caller_max: 16 * 1024 * 1024,
            mailbox_bytes_max: 32 * 1024 * 1024,
            mailbox_bytes_per_caller_max: 8 * 1024 * 1024,
            tell_listeners: Server::tell_listeners,
        }
    }
}

impl SharedOptions {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the share of a message that a caller's requests cause, or the node itself if
    /// `caller` is empty.
    pub(super) fn mailbox_share(&self, caller: String) -> MailboxShare {
        let most = self.mailbox_bytes_max;
        if caller.is_empty() {
            return MailboxShare::new(caller, most, most);
        }
        MailboxShare::new(caller, most - most / 8, self.mailbox_bytes_per_caller_max)
    }
}
