//! Readers that are so far behind that they get stored events before those at hand.

use alloc::vec::Vec;

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::http::{Response, Status};

use super::admission::refusal;
use super::exchange::State;
use super::log::Log;
use super::sessions::GONE;
use super::store::{EventPosition, NotStored, ReadId, StoreAction, StoredEvent};
use super::timing::LEAST;
use super::{Connection, Server, ServerLimits};

/// How far a reader is with the stored events before the log of its stream.
///
/// They come in pages, the next when the last is taken. Meanwhile the log keeps all that it has,
/// as its reader has taken nothing of it.
#[derive(Debug)]
pub(super) struct Replay {
    page: Log,
    /// The place in the page up to which the reader has taken it.
    taken: u64,
    /// The read that is waited for, and until when.
    read: Option<(ReadId, Instant)>,
}

impl Replay {
    fn from(sequence: u64) -> Self {
        Self { page: Log::starting_at(sequence), taken: 0, read: None }
    }

    /// The number of the first event that the reader has not taken as a whole.
    pub(super) fn position(&self) -> u64 {
        self.page.sequence_at(self.page.event_start(self.taken))
    }

    pub(super) fn take(&mut self, most: usize) -> &[u8] {
        let chunk = self.page.read(self.taken, most);
        self.taken += chunk.len() as u64;
        chunk
    }

    fn unread(&self) -> u64 {
        self.page.end() - self.taken
    }

    fn waits_for(&self, read: ReadId) -> bool {
        self.read.is_some_and(|(awaited, _)| awaited == read)
    }

    /// The next page, of events that are stored from `from` on, up to the one numbered `end`.
    ///
    /// `None` if they are not what was asked for: another's, out of order, with a hole, or none at
    /// all. A store that errs in one event is believed in no other.
    // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-007]
    // MCP 2025-11-25 security-best-practices#session-hijacking [SESS-014]
    fn page_of(
        events: &[StoredEvent],
        from: &EventPosition,
        end: u64,
        limits: &ServerLimits,
    ) -> Option<Log> {
        let mut page = Log::starting_at(from.sequence);
        let mut bytes = 0_usize;
        let wanted = events.iter().zip(from.sequence..end);
        for (event, sequence) in wanted.take(limits.store_page_events_max.max(1)) {
            let place = &event.place;
            let own = place.session == from.session
                && place.stream == from.stream
                && place.principal == from.principal;
            if !own || place.sequence != sequence {
                return None;
            }
            bytes = bytes.saturating_add(event.message.len());
            if sequence > from.sequence && bytes > limits.store_page_bytes_max {
                break;
            }
            if event.message.is_empty() {
                page.push_id(from.stream);
            } else {
                page.push(None, Some(from.stream), &event.message);
            }
        }
        (page.next_sequence() > from.sequence).then_some(page)
    }
}

impl Server {
    /// What the external store is to do next, each action once and in order. Always `None` where
    /// there is none: see [`EventStore`](super::EventStore).
    ///
    /// A read has to see the events of its stream that were appended before it; nothing else depends
    /// on the order in which actions are finished. What is not taken waits, up to
    /// [`ServerLimits::store_actions_max`] and [`ServerLimits::store_bytes_max`]; beyond that events
    /// are not stored, and a client that comes back for one is told that it is gone.
    #[must_use]
    pub fn poll_store(&mut self) -> Option<StoreAction> {
        loop {
            match self.store.next_action()? {
                // Whoever wanted it has gone.
                StoreAction::Read { read, .. } if !self.is_awaited(read) => {}
                action => return Some(action),
            }
        }
    }

    /// Takes the events that a read found: those from its place on, in order, without a hole; as
    /// many as there are, or fewer, but one at least.
    ///
    /// They are sent if they are the very events that were asked for. If they are not, or there are
    /// none, the client is told that they are gone. A completion of a read that nobody waits for
    /// (any more) is ignored.
    // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-006] [RESUME-007]
    pub fn handle_stored(
        &mut self,
        read: ReadId,
        events: Result<Vec<StoredEvent>, NotStored>,
        now: Instant,
    ) {
        let (key, number) = (read.connection, read.stream);
        let Some(from) = self.place_after(key, number).filter(|_| self.is_awaited(read)) else {
            return;
        };
        let Some(stream) = self.connections.get_mut(key).and_then(|it| it.streams.get_mut(number))
        else {
            return;
        };
        let end = stream.log.first_sequence();
        let limits = &self.options.limits;
        let page = events.ok().and_then(|it| Replay::page_of(&it, &from, end, limits));
        let Some(page) = page else { return self.fail_replay(key, number, now) };
        stream.replay = Some(Replay { page, taken: 0, read: None }.into());
        let Some(reader) = stream.reader else { return };
        let Some(entry) = self.exchanges.get_mut(reader) else { return };
        if matches!(entry.state, State::Reading) {
            entry.state = State::Opening;
            self.exchange_deadlines.clear(reader.slot);
        } else {
            self.arm_streaming(reader, now);
        }
        self.make_ready(reader);
    }

    /// Actions that the external store was not told of, as too many waited for it: the events among
    /// them are lost to clients that come back for them, and entries may stay that should be
    /// forgotten.
    #[must_use]
    pub const fn dropped_store_actions(&self) -> u64 {
        self.store.dropped()
    }

    fn is_awaited(&self, read: ReadId) -> bool {
        let stream = self.stream(read.connection, read.stream);
        stream
            .and_then(|stream| stream.replay.as_ref())
            .is_some_and(|replay| replay.waits_for(read))
    }

    /// The place of the event after those that a replay has come to.
    fn place_after(&self, key: Key, number: u32) -> Option<EventPosition> {
        let connection = self.connections.get(key)?;
        Some(EventPosition {
            session: connection.session.as_ref()?.id,
            stream: number,
            sequence: connection.streams.get(number)?.replay.as_ref()?.page.next_sequence(),
            principal: connection.principal.clone(),
        })
    }

    /// Whether one more reader could get stored events.
    pub(super) fn can_replay(&self) -> bool {
        self.replays < self.options.limits.store_replays_max && self.store.has_room()
    }

    /// The reader of a stream begins with the stored event `sequence`.
    pub(super) fn begin_replay(&mut self, key: Key, number: u32, sequence: u64, now: Instant) {
        let Some(stream) = self.stream_mut(key, number) else { return };
        stream.resume_behind(Replay::from(sequence));
        self.replays += 1;
        self.read_on(key, number, now);
    }

    /// Asks the store for the next page of a replay.
    fn read_on(&mut self, key: Key, number: u32, now: Instant) {
        let due = now + self.options.timeouts.store_read.max(LEAST);
        let Some(from) = self.place_after(key, number) else { return };
        let Some(read) = self.store.read(key, from, &self.options.limits) else {
            return self.fail_replay(key, number, now);
        };
        let Some(stream) = self.stream_mut(key, number) else { return };
        if let Some(replay) = &mut stream.replay {
            replay.read = Some((read, due));
        }
        let Some(reader) = stream.reader else { return };
        match self.exchanges.get(reader).map(|entry| &entry.state) {
            Some(State::Reading) => self.exchange_deadlines.set(reader.slot, due),
            Some(_) => self.arm_streaming(reader, now),
            None => {}
        }
    }

    /// Goes on with a replay whose page may have been taken; whether there is more for its reader
    /// now. Where it has come to the log, it is over.
    pub(super) fn look_at_replay(&mut self, key: Key, number: u32, now: Instant) -> bool {
        let Some(stream) = self.stream_mut(key, number) else { return false };
        let Some(replay) = &stream.replay else { return false };
        if replay.unread() > 0 {
            return true;
        }
        if replay.read.is_some() {
            return false;
        }
        if replay.page.next_sequence() == stream.log.first_sequence() {
            (stream.replay, stream.behind) = (None, None);
            let ahead = stream.unread() > 0;
            self.replays -= 1;
            return ahead;
        }
        self.read_on(key, number, now);
        false
    }

    /// Lets the reader of a stream go.
    pub(super) fn detach(&mut self, key: Key, number: u32) -> Option<Key> {
        let Connection { streams, .. } = self.connections.get_mut(key)?;
        let stream = streams.get_mut(number)?;
        self.replays -= usize::from(stream.replay.is_some());
        stream.detach()
    }

    /// Until when an exchange waits for the store.
    pub(super) fn read_due(&self, exchange: Key) -> Option<Instant> {
        let entry = self.exchanges.get(exchange)?;
        let replay = self.stream(entry.connection?, entry.stream)?.replay.as_ref()?;
        Some(replay.read?.1)
    }

    /// The stored events cannot be had: the reader is told, with the status if that has not left;
    /// else its response ends, and it is told when it comes back for the rest.
    pub(super) fn fail_replay(&mut self, key: Key, number: u32, now: Instant) {
        let Some(reader) = self.detach(key, number) else { return };
        let Some(entry) = self.exchanges.get_mut(reader) else { return };
        entry.connection = None;
        let told = matches!(entry.state, State::Reading);
        entry.state = if told {
            let response: Response = refusal(Status::GONE, None, GONE);
            State::Whole(response)
        } else {
            State::Closing
        };
        self.exchange_deadlines.clear(reader.slot);
        self.make_ready(reader);
        if told && let Some(stream) = self.stream_mut(key, number) {
            // Told once: one who comes without an id goes on with what there is.
            stream.behind = None;
        }
        self.detached(key, number, now);
    }

    /// Stores the ids that a stream has given since the last time.
    pub(super) fn record_ids(&mut self, key: Key, number: u32) {
        let Some(Connection { session: Some(session), principal, streams, .. }) =
            self.connections.get_mut(key)
        else {
            return;
        };
        if let Some(stream) = streams.get_mut(number) {
            self.store.record(session, principal.as_ref(), stream, b"");
        }
    }
}
