use alloc::collections::BTreeSet;

use crate::Instant;
use crate::http::SessionId;

/// What is known of a legacy session beside its protocol state.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) transport: Transport,
    /// Number of the next stream.
    pub(super) next_stream: u32,
    /// Exchanges that are open in it.
    pub(super) open: usize,
    /// Finished streams that are kept, by number.
    pub(super) finished: BTreeSet<u32>,
    /// Whether anything of it was given to the store.
    pub(super) recorded: bool,
    /// When it was last seen to be in use.
    pub(super) last_used: Instant,
    /// The slots of its caller's sessions that were used last before it, and next after it.
    pub(super) older: u32,
    pub(super) newer: u32,
}

/// How the messages of a session travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// Each request on its own exchange, beside one stream for what belongs to none.
    Streamable,
    /// All messages to the client on one stream of events.
    // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-004]
    EventStream,
}

/// The stream for what belongs to no request.
pub(super) const STANDALONE: u32 = 0;
