use alloc::collections::BTreeSet;

use crate::Instant;
use crate::http::SessionId;

use super::store_queue::Account;

/// The state of a legacy session in addition to its protocol state.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) transport: Transport,
    /// The number of the next stream.
    pub(super) next_stream: u32,
    /// The number of open exchanges.
    pub(super) open: usize,
    /// The numbers of the finished streams that are kept.
    pub(super) finished: BTreeSet<u32>,
    /// Whether any of its events was stored.
    pub(super) recorded: bool,
    /// The share of the store's queue that its actions use.
    pub(super) account: Account,
    /// The last time at which it was used.
    pub(super) last_used: Instant,
    /// The slots of its caller's sessions that were used before and after it.
    pub(super) older: u32,
    pub(super) newer: u32,
}

/// The transport of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// Each request has its own exchange, and one additional stream carries all other messages.
    Streamable,
    /// All messages to the client are sent on one event stream.
    // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-004]
    EventStream,
}

/// The stream for messages that belong to no request.
pub(super) const STANDALONE: u32 = 0;
