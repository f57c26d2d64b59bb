use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_sansio::http::NodeId;
use redis::Value;

use crate::link::{Failure, Link};
use crate::reply;

/// How long Redis waits for a message: a node whose id has changed looks into its new mailbox then.
pub(crate) const BLOCKING: Duration = Duration::from_secs(1);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(200);
/// Messages read at once.
const PAGE: usize = 128;
/// The position before the first entry.
const START: &str = "0-0";

/// The messages for the current node.
#[derive(Debug)]
pub(crate) struct Mailbox {
    link: Link,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    node: Option<NodeId>,
    /// The id of the last entry that was read.
    last: String,
    received: VecDeque<Vec<u8>>,
    /// Entries that were read and not removed.
    read: usize,
}

impl Mailbox {
    pub(crate) fn new(link: Link) -> Self {
        Self { link, state: Mutex::default() }
    }

    /// Sets the node that receives. Nodes before it receive nothing any more.
    pub(crate) fn set_node(&self, node: NodeId) {
        let mut state = self.lock();
        if state.node != Some(node) {
            *state = State { node: Some(node), last: START.into(), ..State::default() };
        }
    }

    /// Returns the next message. `key` returns the key of a node's mailbox.
    pub(crate) async fn receive(&self, key: impl Fn(NodeId) -> String) -> Vec<u8> {
        loop {
            let (node, last, trims) = {
                let mut state = self.lock();
                if let Some(message) = state.received.pop_front() {
                    return message;
                }
                let trims = state.read >= PAGE;
                if trims {
                    state.read = 0;
                }
                (state.node, state.last.clone(), trims)
            };
            let read = match node {
                Some(node) => self.read(&key(node), &last, trims).await,
                None => Err(Failure::Disconnected),
            };
            match read {
                Ok(entries) => self.take(node, entries),
                Err(_) => crate::sleep::sleep(PAUSE).await,
            }
        }
    }

    /// Waits for the entries after `last`, after removing the earlier ones if `trims`.
    async fn read(&self, key: &str, last: &str, trims: bool) -> Result<Vec<reply::Entry>, Failure> {
        if trims {
            // The length is bounded as well; this only frees memory.
            let mut command = redis::cmd("XTRIM");
            command.arg(key).arg("MINID").arg("~").arg(last);
            self.link.query(&command).await?;
        }
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(PAGE).arg("BLOCK").arg(BLOCKING.as_millis() as u64);
        command.arg("STREAMS").arg(key).arg(last);
        Ok(reply::read_entries(self.link.query(&command).await?))
    }

    fn take(&self, node: Option<NodeId>, entries: Vec<reply::Entry>) {
        let mut state = self.lock();
        if state.node != node {
            return;
        }
        state.read += entries.len();
        for entry in entries {
            state.last = entry.id;
            if let Some(Value::BulkString(message)) = entry.message {
                state.received.push_back(message);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
