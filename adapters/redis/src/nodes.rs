use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_sansio::http::{Lease, MailboxShare, NodeId};
use redis::Value;

use crate::keys::Keys;
use crate::link::{Failure, Link};
use crate::reply::{items, number, text};
use crate::scripts::Step;
use crate::store::Inner;
use crate::{RedisOptions, RedisStoreError, SCHEMA, milliseconds, reply};

/// Nodes, and the messages between them.
impl Inner {
    pub(crate) async fn extend_lease(
        &self,
        node: NodeId,
        lease: Duration,
        joins: bool,
        contents: u64,
    ) -> Result<Lease, Failure> {
        let reply = self.link.run(Step::Heartbeat, |command| {
            let Self { keys, .. } = self;
            command.arg(3).arg(keys.leases()).arg(keys.contents()).arg(keys.schema());
            command.arg(node.to_string()).arg(milliseconds(lease));
            command.arg(if joins { "1" } else { "0" }).arg(contents).arg(SCHEMA);
        });
        let mut parts = items(reply.await?).into_iter();
        let held = parts.next().as_ref().and_then(number).unwrap_or(-1);
        let contents = parts.next().as_ref().and_then(text).and_then(|it| it.parse().ok());
        match (held, contents) {
            (0 | 1, Some(contents)) => {
                let nodes = parts.filter_map(|node| NodeId::parse(text(&node)?)).collect();
                Ok(Lease::new(held == 1, contents, nodes))
            }
            // Redis was emptied, and a node of an incompatible version was the first to use it.
            _ => Err(Failure::Disconnected),
        }
    }

    pub(crate) async fn leave(&self, node: NodeId) -> Result<(), Failure> {
        let name = node.to_string();
        self.link.query(redis::cmd("ZREM").arg(self.keys.leases()).arg(name)).await?;
        let mut command = redis::cmd("UNLINK");
        command.arg(self.keys.mailbox(node)).arg(self.keys.mailbox_bytes(node));
        self.link.query(&command).await.map(drop)
    }

    pub(crate) async fn depose(&self, node: NodeId, contents: u64) -> Result<bool, Failure> {
        let deposed = self.link.run(Step::Depose, |command| {
            command.arg(2).arg(self.keys.leases()).arg(self.keys.contents());
            command.arg(node.to_string()).arg(contents);
        });
        Ok(number(&deposed.await?) == Some(1))
    }

    /// Sends a message, and returns whether the mailbox of the receiver had room for it.
    pub(crate) async fn send(
        &self,
        from: NodeId,
        to: Option<NodeId>,
        message: &[u8],
        share: &MailboxShare,
    ) -> Result<bool, Failure> {
        let to = to.map(|node| node.to_string()).unwrap_or_default();
        let RedisOptions { mailbox_max, mailbox_retention, .. } = &*self.options;
        let sent = self.link.run(Step::Send, |command| {
            command.arg(1).arg(self.keys.leases()).arg(self.keys.mailboxes());
            command.arg(from.to_string()).arg(to).arg(message);
            command.arg(*mailbox_max).arg(milliseconds(*mailbox_retention));
            // A caller cannot be named as the sum is.
            let caller = if share.caller.is_empty() { "node" } else { &share.caller };
            command.arg(caller).arg(share.bytes_max).arg(share.caller_bytes_max);
        });
        Ok(number(&sent.await?) == Some(1))
    }

    /// Sets the version of the schema, or compares it. While Redis cannot be reached, the first
    /// heartbeat will do it.
    pub(crate) async fn check_schema(&self) -> Result<(), RedisStoreError> {
        let found = self.link.run(Step::Schema, |command| {
            command.arg(1).arg(self.keys.schema()).arg(SCHEMA);
        });
        let found = match found.await {
            Ok(found) => text(&found).unwrap_or_default().to_owned(),
            Err(Failure::Redis(error)) if !is_unreachable(&error) => {
                return Err(RedisStoreError::Unavailable(error));
            }
            Err(_) => return Ok(()),
        };
        if major(&found) == major(SCHEMA) {
            return Ok(());
        }
        Err(RedisStoreError::Schema { found, used: SCHEMA })
    }
}

/// Whether Redis does not run or does not answer, which may pass. Wrong credentials do not.
fn is_unreachable(error: &redis::RedisError) -> bool {
    use redis::{ErrorKind, ServerErrorKind};
    error.is_io_error()
        || error.is_timeout()
        || error.is_connection_refusal()
        || error.is_connection_dropped()
        || matches!(
            error.kind(),
            ErrorKind::Server(ServerErrorKind::BusyLoading | ServerErrorKind::MasterDown)
        )
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

// ------------------------------------------------------------------ mailbox

/// How long Redis waits for a message: a node whose id has changed looks into its new mailbox then.
pub(crate) const BLOCKING: Duration = Duration::from_secs(1);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(200);
/// Messages taken at once, and their bytes, not counting the first. 256 KiB: many of the usual
/// size.
const PAGE: usize = 128;
const PAGE_BYTES: usize = 256 * 1024;
/// The position before the first entry.
const START: &str = "0-0";

/// The messages for the current node. They are removed from Redis by the command that reads the next
/// ones: the reply with them may be lost, and their senders were told that they are delivered.
#[derive(Debug)]
pub(crate) struct Mailbox {
    link: Link,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    node: Option<NodeId>,
    /// The ids of messages that were read and not removed. After them there may be others.
    read: Vec<String>,
    received: VecDeque<Vec<u8>>,
}

impl Mailbox {
    pub(crate) fn new(link: Link) -> Self {
        Self { link, state: Mutex::default() }
    }

    /// Sets the node that receives. Nodes before it receive nothing any more.
    pub(crate) fn set_node(&self, node: NodeId) {
        let mut state = self.lock();
        if state.node != Some(node) {
            *state = State { node: Some(node), ..State::default() };
        }
    }

    /// Returns the next message.
    pub(crate) async fn receive(&self, keys: &Keys) -> Vec<u8> {
        loop {
            let (node, read) = {
                let mut state = self.lock();
                if let Some(message) = state.received.pop_front() {
                    return message;
                }
                (state.node, state.read.clone())
            };
            let entries = match node {
                Some(node) if read.is_empty() => self.wait(keys, node).await,
                Some(node) => self.take(keys, node, read).await,
                None => Err(Failure::Disconnected),
            };
            match entries {
                Ok(entries) => self.keep(node, entries),
                Err(_) => crate::link::sleep(PAUSE).await,
            }
        }
    }

    /// Waits for a message, which is not removed yet: a command that waits cannot be part of a
    /// script.
    async fn wait(&self, keys: &Keys, node: NodeId) -> Result<Vec<reply::Entry>, Failure> {
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(1).arg("BLOCK").arg(BLOCKING.as_millis() as u64);
        command.arg("STREAMS").arg(keys.mailbox(node)).arg(START);
        Ok(reply::read_entries(self.link.query(&command).await?))
    }

    /// Removes messages that were read, and reads those after them.
    async fn take(
        &self,
        keys: &Keys,
        node: NodeId,
        read: Vec<String>,
    ) -> Result<Vec<reply::Entry>, Failure> {
        let taken = self.link.run(Step::Take, |command| {
            command.arg(2).arg(keys.mailbox(node)).arg(keys.mailbox_bytes(node));
            command.arg(PAGE_BYTES).arg(PAGE).arg(read);
        });
        Ok(reply::entries(taken.await?))
    }

    /// Keeps messages of the current node, which Redis still has. Those before them are removed.
    fn keep(&self, node: Option<NodeId>, entries: Vec<reply::Entry>) {
        let mut state = self.lock();
        if state.node != node {
            return;
        }
        state.read.clear();
        for entry in entries {
            state.read.push(entry.id);
            if let Some(Value::BulkString(message)) = entry.message {
                state.received.push_back(message);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
