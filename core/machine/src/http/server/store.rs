//! The store of events outside of the machine: what it is asked, and what it answers.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio_collections::Key;

use crate::http::{Principal, SessionId};

use super::ServerLimits;
use super::session::Session;
use super::stream::Stream;

/// Where events are kept for clients that come back for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "recording", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "recording", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum EventStore {
    /// In the machine, within the bounds of [`ServerLimits`].
    #[default]
    Memory,
    /// Recent ones in the machine, within the same bounds, and all of them in a store of the
    /// deployment's, which [`Server::poll_store`](super::Server::poll_store) says what to do. For
    /// drivers that ask it: with another one, events wait for nobody and use up their bounds.
    ///
    /// The store holds what sessions said, not the sessions: these are gone with the machine.
    External,
}

/// The place of an event: whose it is, and where it stands there.
///
/// All four parts belong to the key under which a store keeps the event. Without them it could hand
/// one client what was meant for another.
// MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-002] [RESUME-003]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPosition {
    /// The session. Its name is a secret: a store may keep a hash of it instead, and gives back the
    /// name that it was asked with where the hashes agree.
    pub session: SessionId,
    /// The number of the stream within the session. None is used twice.
    pub stream: u32,
    /// The number of the event within the stream. There are no holes: they count from 0, one by one.
    pub sequence: u64,
    /// Whose session it is, as far as the machine was told.
    pub principal: Option<Principal>,
}

/// An event as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Where it stands.
    pub place: EventPosition,
    /// The message as JSON; nothing, where the event only gave the client an id to come back with.
    ///
    /// Those are stored too, so that numbers have no holes but for what is lost.
    pub message: Vec<u8>,
}

impl fmt::Debug for StoredEvent {
    /// Leaves the message out: logs are read by many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.message.len();
        f.debug_struct("StoredEvent")
            .field("place", &self.place)
            .field("message_length", &length)
            .finish()
    }
}

/// Names a read of a [`Server`](super::Server). None is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadId {
    pub(crate) connection: Key,
    pub(crate) stream: u32,
    pub(crate) number: u64,
}

/// What an external store is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreAction {
    /// Keep an event.
    Append {
        /// The event, whose place has none yet.
        event: StoredEvent,
    },
    /// Look up the events of one stream from a place on, and say so with
    /// [`Server::handle_stored`](super::Server::handle_stored).
    Read {
        /// Names the read in its completion.
        read: ReadId,
        /// The place of the first event that is wanted.
        from: EventPosition,
        /// The most events that are taken of the completion.
        events_max: usize,
        /// The most bytes of messages that are taken of the completion, but for its first event,
        /// which is taken whatever its length.
        bytes_max: usize,
    },
    /// Drop all events of a stream, or of a session: nobody can come back for them any more.
    ///
    /// A machine that ends abruptly asks for nothing more, so a store lets entries expire by itself
    /// as well, a while after [`ServerTimeouts::session_idle`](super::ServerTimeouts::session_idle).
    Forget {
        /// The session.
        session: SessionId,
        /// The stream; `None`: all of the session.
        stream: Option<u32>,
        /// Whose session it is.
        principal: Option<Principal>,
    },
}

/// A store does not have what was asked of it, or cannot be reached. Whoever asked is told that the
/// events are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store does not have these events")]
pub struct NotStored;

/// What waits for the store.
#[derive(Debug)]
pub(super) struct Store {
    external: bool,
    actions: VecDeque<StoreAction>,
    /// Bytes of the messages among them.
    bytes: usize,
    actions_max: usize,
    bytes_max: usize,
    reads: u64,
    dropped: u64,
}

impl Store {
    pub(super) const fn new(kind: EventStore, limits: &ServerLimits) -> Self {
        Self {
            external: matches!(kind, EventStore::External),
            actions: VecDeque::new(),
            bytes: 0,
            actions_max: limits.store_actions_max,
            bytes_max: limits.store_bytes_max,
            reads: 0,
            dropped: 0,
        }
    }

    pub(super) const fn is_external(&self) -> bool {
        self.external
    }

    /// Actions that could not wait, as too many did.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether a read, or an event without a message, could wait.
    pub(super) fn has_room(&self) -> bool {
        self.actions.len() < self.actions_max
    }

    pub(super) fn next_action(&mut self) -> Option<StoreAction> {
        let action = self.actions.pop_front()?;
        if let StoreAction::Append { event } = &action {
            self.bytes -= event.message.len();
        }
        // An idle server does not hold the memory of its busiest moment.
        if self.actions.is_empty() {
            self.actions = VecDeque::new();
        }
        Some(action)
    }

    /// Stores what a stream said since the last time: ids alone, but for the last event, which has
    /// this message.
    ///
    /// An event for which there is no room is missing from then on. Its number is not given to
    /// another, so the hole is found by whoever reads over it, and told.
    // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-001] [RESUME-006]
    pub(super) fn record(
        &mut self,
        session: &mut Session,
        principal: Option<&Principal>,
        stream: &mut Stream,
        message: &[u8],
    ) {
        if !self.external || !stream.resumable {
            return;
        }
        let next = stream.log.next_sequence();
        while stream.recorded < next {
            let sequence = stream.recorded;
            stream.recorded += 1;
            let message = if stream.recorded == next { message } else { b"" };
            if !self.has_room() || message.len() > self.bytes_max - self.bytes {
                self.dropped += 1;
                continue;
            }
            session.recorded = true;
            self.bytes += message.len();
            let place = EventPosition {
                session: session.id,
                stream: stream.number,
                sequence,
                principal: principal.cloned(),
            };
            let event = StoredEvent { place, message: message.to_vec() };
            self.actions.push_back(StoreAction::Append { event });
        }
    }

    /// Reads a stream from a place on. `None`: there is no room.
    pub(super) fn read(
        &mut self,
        connection: Key,
        from: EventPosition,
        limits: &ServerLimits,
    ) -> Option<ReadId> {
        if !self.has_room() {
            self.dropped += 1;
            return None;
        }
        let read = ReadId { connection, stream: from.stream, number: self.reads };
        self.reads += 1;
        self.actions.push_back(StoreAction::Read {
            read,
            from,
            events_max: limits.store_page_events_max,
            bytes_max: limits.store_page_bytes_max,
        });
        Some(read)
    }

    /// Gives up a stream, or a session, of which something was stored.
    pub(super) fn forget(
        &mut self,
        session: &Session,
        stream: Option<u32>,
        principal: Option<&Principal>,
    ) {
        if !session.recorded {
            return;
        }
        // As much room again, which no client that only talks can take.
        if self.actions.len() >= self.actions_max.saturating_mul(2) {
            self.dropped += 1;
            return;
        }
        let principal = principal.cloned();
        self.actions.push_back(StoreAction::Forget { session: session.id, stream, principal });
    }

    /// What waits, as it is counted and as it is.
    pub(super) fn assert_consistent(&self) {
        let lengths = self.actions.iter().map(|action| match action {
            StoreAction::Append { event } => event.message.len(),
            _ => 0,
        });
        assert_eq!(self.bytes, lengths.sum::<usize>(), "bytes that wait for the store");
        assert!(self.bytes <= self.bytes_max, "the bound on bytes");
        assert!(self.actions.len() <= self.actions_max * 2, "the bound on actions");
        assert!(self.external || self.actions.is_empty(), "there is no store");
    }
}
