//! Readers that get stored events before those in the log.

use alloc::vec::Vec;

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::http::{Response, Status};

use super::exchange::State;
use super::log::Log;
use super::reader::{busy, refusal};
use super::sessions::GONE;
use super::shared::Follow;
use super::store::{EventPosition, NotStored, ReadId, StoreAction, StoredEvent};
use super::store_queue::Account;
use super::stream::Stream;
use super::timing::LEAST;
use super::{Connection, Exhausted, Server, ServerLimits, SharedResource};

/// The progress of a reader in the stored events that precede the log of its stream.
///
/// The events are read in pages; the next page is read when the last one is taken. Meanwhile the
/// log keeps all of its events, because its reader has not taken any of them.
#[derive(Debug)]
pub(super) struct Replay {
    page: Log,
    /// The position in the page up to which the reader has taken it.
    taken: u64,
    /// The pending read and its deadline.
    read: Option<(ReadId, Instant)>,
    /// The reader's state, if another node produces the stream.
    pub(super) follow: Option<Follow>,
}

impl Replay {
    pub(super) fn from(sequence: u64) -> Self {
        Self { page: Log::starting_at(sequence), taken: 0, read: None, follow: None }
    }

    /// Sets the next page, and ends the pending read.
    pub(super) fn turn_to(&mut self, page: Log) {
        (self.page, self.taken, self.read) = (page, 0, None);
    }

    /// Ends the pending read without events.
    pub(super) const fn end_read(&mut self) {
        self.read = None;
    }

    /// Returns the number of the first event that the reader has not taken completely.
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

    /// Builds the next page from the events stored from `from` on, up to the number `end`.
    ///
    /// Returns `None` if they are not the requested events: from another stream, out of order, with
    /// a gap, or empty. If one event is wrong, the complete page is rejected.
    // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-007]
    // MCP 2025-11-25 security-best-practices#session-hijacking [SESS-014]
    pub(super) fn page_of(
        events: &[StoredEvent],
        from: &EventPosition,
        end: u64,
        limits: &ServerLimits,
    ) -> Option<Log> {
        let mut page = Log::starting_at(from.sequence);
        let mut bytes = 0_usize;
        let wanted = events.iter().zip(from.sequence..end);
        for (event, sequence) in wanted.take(limits.store_page_events_max.max(1)) {
            let position = &event.position;
            let own = position.session == from.session
                && position.stream == from.stream
                && position.principal == from.principal;
            if !own || position.sequence != sequence {
                return None;
            }
            bytes = bytes.saturating_add(event.message.len());
            if sequence > from.sequence && bytes > limits.store_page_bytes_max {
                break;
            }
            // The first event of a shared stream has the ids of its requests.
            if event.message.is_empty() || sequence == 0 {
                page.push_id(from.stream);
            } else {
                page.push(None, Some(from.stream), &event.message);
            }
        }
        (page.next_sequence() > from.sequence).then_some(page)
    }
}

impl Server {
    /// Returns the next action for the external store, each action once and in order. Always `None`
    /// without one: see [`EventStore`](super::EventStore).
    ///
    /// A read must see the events of its stream that were appended before it; otherwise the order
    /// in which actions complete does not matter. Actions wait here until they are taken, up to
    /// [`ServerLimits::store_actions_max`] and [`ServerLimits::store_bytes_max`]. Beyond these
    /// limits events are not stored, and a client that resumes after one is told that it is gone.
    #[must_use]
    pub fn poll_store(&mut self) -> Option<StoreAction> {
        loop {
            match self.store.next_action()? {
                // The reader that requested it has gone.
                StoreAction::Read { read, .. } if !self.is_awaited(read) => {}
                action => return Some(action),
            }
        }
    }

    /// Returns whether actions wait for [`poll_store`](Self::poll_store), which may drop them.
    pub(crate) fn has_store_actions(&self) -> bool {
        self.store.has_actions()
    }

    /// Handles the events that a read found: from its position on, in order and without gaps. It
    /// may return fewer than exist, but at least one.
    ///
    /// They are sent if they are exactly the requested events. Otherwise, or if the result is
    /// empty, the client is told that they are gone. The result of a read that is no longer pending
    /// is ignored.
    // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-006] [RESUME-007]
    pub fn handle_stored(
        &mut self,
        read: ReadId,
        events: Result<Vec<StoredEvent>, NotStored>,
        now: Instant,
    ) {
        let (key, number) = (read.connection, read.stream);
        let Some(from) = self.position_after(key, number).filter(|_| self.is_awaited(read)) else {
            return;
        };
        if self.stream(key, number).is_some_and(Stream::is_foreign) {
            return self.handle_followed(key, number, &from, events, now);
        }
        let Some(stream) = self.connections.get_mut(key).and_then(|it| it.streams.get_mut(number))
        else {
            return;
        };
        let end = stream.log.first_sequence();
        let limits = &self.options.limits;
        let page = events.ok().and_then(|it| Replay::page_of(&it, &from, end, limits));
        let Some(page) = page else { return self.fail_replay(key, number, gone(), now) };
        if let Some(replay) = &mut stream.replay {
            replay.turn_to(page);
        }
        self.continue_reader(key, number, now);
    }

    /// Sends the head of a response that waited for the store, and the events after it.
    pub(super) fn continue_reader(&mut self, key: Key, number: u32, now: Instant) {
        let Some(reader) = self.stream(key, number).and_then(|stream| stream.reader) else {
            return;
        };
        let Some(entry) = self.exchanges.get_mut(reader) else { return };
        if matches!(entry.state, State::Reading) {
            entry.state = State::Opening;
            self.rest(reader);
        } else {
            self.arm_streaming(reader, now);
        }
        self.make_ready(reader);
    }

    /// Handles a read that failed because the store cannot be reached, unlike one whose events are
    /// gone. The client may resume later: its response is 503 with `Retry-After`, or ends.
    pub fn fail_read(&mut self, read: ReadId, now: Instant) {
        if self.is_awaited(read) {
            self.fail_replay(read.connection, read.stream, busy(None, UNREACHABLE), now);
        }
    }

    /// Returns the number of actions that were dropped because too many were waiting for the
    /// external store. Dropped events are lost for clients that resume a stream, and dropped
    /// removals may leave entries in the store.
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

    /// Returns the position after the events that a replay has read.
    pub(super) fn position_after(&self, key: Key, number: u32) -> Option<EventPosition> {
        let connection = self.connections.get(key)?;
        Some(EventPosition {
            session: connection.session.as_ref()?.id,
            stream: connection.streams.get(number)?.number,
            sequence: connection.streams.get(number)?.replay.as_ref()?.page.next_sequence(),
            principal: connection.machine.caller().principal().cloned(),
        })
    }

    /// Checks that another reader of a session can get stored events.
    pub(super) fn check_replays(&self, key: Key) -> Result<(), Response> {
        let limits = &self.options.limits;
        let caller = self.connections.get(key).and_then(|connection| connection.caller);
        let exhausted = if self.callers.replays(caller) >= limits.store_replays_per_caller_max {
            Exhausted::Share
        } else if self.replays >= limits.store_replays_max
            || !self.store.has_room(self.account_of(key))
        {
            Exhausted::Total
        } else {
            return Ok(());
        };
        Err(SharedResource::StoreReaders.refusal(exhausted).to_response(None))
    }

    /// Counts a reader of a session that gets stored events.
    pub(super) fn count_replay(&mut self, key: Key) {
        self.replays += 1;
        let caller = self.connections.get(key).and_then(|connection| connection.caller);
        self.callers.begin_replay(caller);
    }

    pub(super) fn end_replays(&mut self, key: Key, count: usize) {
        self.replays -= count;
        let caller = self.connections.get(key).and_then(|connection| connection.caller);
        self.callers.end_replays(caller, u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Returns the account for the store of a session's caller.
    pub(super) fn account_of(&self, key: Key) -> Account {
        let session = self.connections.get(key).and_then(|it| it.session.as_ref());
        session.map_or(Account::Unknown, |session| session.account)
    }

    /// Starts the reader of a stream at the stored event `sequence`.
    pub(super) fn begin_replay(&mut self, key: Key, number: u32, sequence: u64, now: Instant) {
        let Some(stream) = self.stream_mut(key, number) else { return };
        stream.resume_behind(Replay::from(sequence));
        self.count_replay(key);
        self.read_on(key, number, now);
    }

    /// Requests the next page of a replay from the store.
    pub(super) fn read_on(&mut self, key: Key, number: u32, now: Instant) {
        let due = now + self.options.timeouts.store_read.max(LEAST);
        let Some(mut from) = self.position_after(key, number) else { return };
        let mut events_max = self.options.limits.store_page_events_max;
        if self.expects_ids(key, number) {
            (from.sequence, events_max) = (0, 1);
        }
        let reader = (self.account_of(key), key);
        let Some(read) = self.store.read(reader, from, events_max, &self.options.limits) else {
            return self.fail_replay(key, number, busy(None, UNREACHABLE), now);
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

    /// Continues a replay whose page may have been taken. Returns whether there is more for its
    /// reader now. The replay ends when it reaches the log.
    pub(super) fn look_at_replay(&mut self, key: Key, number: u32, now: Instant) -> bool {
        let Some(stream) = self.stream_mut(key, number) else { return false };
        let Some(replay) = &stream.replay else { return false };
        if replay.unread() > 0 {
            return true;
        }
        if replay.read.is_some() {
            return false;
        }
        if replay.follow.is_some() {
            return self.look_at_followed(key, number, now);
        }
        if replay.page.next_sequence() == stream.log.first_sequence() {
            (stream.replay, stream.behind) = (None, None);
            let ahead = stream.ready() > 0;
            self.end_replays(key, 1);
            return ahead;
        }
        self.read_on(key, number, now);
        false
    }

    /// Detaches the reader of a stream.
    pub(super) fn detach(&mut self, key: Key, number: u32) -> Option<Key> {
        let Connection { streams, .. } = self.connections.get_mut(key)?;
        let stream = streams.get_mut(number)?;
        let replays = stream.replay.is_some();
        let reader = stream.detach();
        if replays {
            self.end_replays(key, 1);
        }
        reader
    }

    /// Returns the deadline of the read that an exchange waits for.
    pub(super) fn read_due(&self, exchange: Key) -> Option<Instant> {
        let entry = self.exchanges.get(exchange)?;
        let replay = self.stream(entry.connection?, entry.stream)?.replay.as_ref()?;
        let again = replay.follow.as_ref().and_then(|follow| follow.again);
        replay.read.map(|(_, due)| due).or(again)
    }

    /// Handles the deadline of a read, or of a look for new events.
    pub(super) fn replay_due(&mut self, key: Key, number: u32, now: Instant) {
        let replay = self.stream(key, number).and_then(|stream| stream.replay.as_ref());
        if replay.is_some_and(|replay| replay.read.is_none()) {
            return self.look_again(key, number, now);
        }
        // A shared store that is slow may still have the events.
        let response = if self.shared.is_some() { busy(None, UNREACHABLE) } else { gone() };
        self.fail_replay(key, number, response, now);
    }

    /// Handles stored events that are not available. The reader gets `response` if its response
    /// head was not sent yet. Otherwise its response ends, and it gets the status when it resumes
    /// the stream.
    pub(super) fn fail_replay(&mut self, key: Key, number: u32, response: Response, now: Instant) {
        let Some(reader) = self.detach(key, number) else { return };
        let Some(entry) = self.exchanges.get_mut(reader) else { return };
        entry.connection = None;
        let told = matches!(entry.state, State::Reading);
        entry.state = if told { State::Whole(response) } else { State::Closing };
        self.exchange_deadlines.clear(reader.slot);
        self.make_ready(reader);
        if told && let Some(stream) = self.stream_mut(key, number) {
            // Reported once: a reader without an event id continues with the available events.
            stream.behind = None;
        }
        self.detached(key, number, now);
    }

    /// Stores the event ids that a stream has issued since the last call.
    pub(super) fn record_ids(&mut self, key: Key, number: u32) {
        let Some(Connection { machine, session: Some(session), streams, .. }) =
            self.connections.get_mut(key)
        else {
            return;
        };
        if let Some(stream) = streams.get_mut(number) {
            self.store.record(session, machine, stream, b"");
        }
        if self.shared.is_some() {
            self.notify_followers(key, number);
        }
    }
}

pub(super) fn gone() -> Response {
    refusal(Status::GONE, None, GONE)
}

const UNREACHABLE: &str = "the store of events cannot be reached";
