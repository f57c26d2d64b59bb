use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_sansio::http::NodeId;
use redis::Value;

use crate::keys::Keys;
use crate::link::{Failure, Link};
use crate::reply;
use crate::scripts::Step;

/// How long Redis waits for a message: a node whose id has changed looks into its new mailbox then.
pub(crate) const BLOCKING: Duration = Duration::from_secs(1);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(200);
/// Messages taken at once, and their bytes, not counting the first. 256 KiB: many of the usual size.
const PAGE: usize = 128;
const PAGE_BYTES: usize = 256 * 1024;
/// The position before the first entry.
const START: &str = "0-0";

/// The messages for the current node. They are removed from Redis when they are read: a message that
/// waits has room for others again.
#[derive(Debug)]
pub(crate) struct Mailbox {
    link: Link,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    node: Option<NodeId>,
    /// Whether there may be further messages, and the id of one that was read and not removed.
    more: Option<String>,
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
            let (node, more) = {
                let mut state = self.lock();
                if let Some(message) = state.received.pop_front() {
                    return message;
                }
                (state.node, state.more.clone())
            };
            let read = match (node, &more) {
                (Some(node), Some(read)) => self.take(keys, node, read).await,
                (Some(node), None) => self.wait(keys, node).await,
                (None, _) => Err(Failure::Disconnected),
            };
            match read {
                Ok(entries) => self.keep(node, more.is_some(), entries),
                Err(_) => crate::sleep::sleep(PAUSE).await,
            }
        }
    }

    /// Waits for a message, which is not removed yet: a command that waits cannot be part of a script.
    async fn wait(&self, keys: &Keys, node: NodeId) -> Result<Vec<reply::Entry>, Failure> {
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(1).arg("BLOCK").arg(BLOCKING.as_millis() as u64);
        command.arg("STREAMS").arg(keys.mailbox(node)).arg(START);
        Ok(reply::read_entries(self.link.query(&command).await?))
    }

    /// Removes a message that was read, and takes those after it.
    async fn take(
        &self,
        keys: &Keys,
        node: NodeId,
        read: &str,
    ) -> Result<Vec<reply::Entry>, Failure> {
        let taken = self.link.run(Step::Take, |command| {
            command.arg(2).arg(keys.mailbox(node)).arg(keys.mailbox_bytes(node));
            command.arg(read).arg(PAGE_BYTES).arg(PAGE);
        });
        Ok(reply::entries(taken.await?))
    }

    /// Keeps messages of the current node. If there were any, there may be more.
    fn keep(&self, node: Option<NodeId>, removed: bool, entries: Vec<reply::Entry>) {
        let mut state = self.lock();
        if state.node != node {
            return;
        }
        state.more = None;
        for entry in entries {
            state.more = Some(if removed { String::new() } else { entry.id });
            if let Some(Value::BulkString(message)) = entry.message {
                state.received.push_back(message);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
