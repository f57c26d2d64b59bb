use core::time::Duration;

use crate::Instant;
use crate::peer::slab::Key;

use super::log::Log;

/// One stream of messages to a client: what answers a request, or what comes unasked.
///
/// It outlives the connections that carry it: its reader may go and come back.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) number: u32,
    pub(super) log: Log,
    /// The exchange that carries the stream now.
    pub(super) reader: Option<Key>,
    /// The place in the log up to which readers have taken it.
    pub(super) taken: u64,
    /// Whether events have ids, so that a reader can come back.
    pub(super) resumable: bool,
    /// Whether a reader begins with an event that only gives it an id.
    pub(super) primes: bool,
    /// The type of the events, where they have one.
    pub(super) kind: Option<&'static str>,
    /// Whether a response carries it as events already.
    pub(super) opened: bool,
    /// Nothing more will be appended.
    pub(super) done: bool,
    /// Until when it is kept for its reader, once it is done.
    pub(super) kept_until: Option<Instant>,
}

impl Stream {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            log: Log::default(),
            reader: None,
            taken: 0,
            resumable: false,
            primes: false,
            kind: None,
            opened: false,
            done: false,
            kept_until: None,
        }
    }

    fn name(&self) -> Option<u32> {
        self.resumable.then_some(self.number)
    }

    /// Appends a message.
    pub(super) fn push(&mut self, message: &[u8]) {
        self.log.push(self.kind, self.name(), message);
    }

    /// Makes it a stream of events, if it is not one yet.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-005]
    pub(super) fn open(&mut self) {
        if !self.opened {
            self.opened = true;
            if self.primes {
                self.log.push_priming(self.number, None);
            }
        }
    }

    /// Appends the time after which to come back.
    pub(super) fn push_retry(&mut self, retry: Duration) {
        self.log.push_retry(retry);
    }

    /// Bytes that no reader has taken.
    pub(super) fn unread(&self) -> u64 {
        self.log.end() - self.taken
    }

    /// Whether a client could come back for it.
    pub(super) const fn can_resume(&self) -> bool {
        self.resumable && self.opened
    }
}
