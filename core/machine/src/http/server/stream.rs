use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::peer::queue::Tag;

use super::log::{Log, Resume};
use super::options::ResponseMode;
use super::replay::Replay;

/// A stream of messages to a client: the response to a request and the messages before it, or
/// messages that belong to no request.
///
/// It outlives the connections that carry it: its reader may disconnect and resume it.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) number: u32,
    pub(super) log: Log,
    /// The exchange that currently carries the stream.
    pub(super) reader: Option<Key>,
    /// The position in the log up to which the reader has taken it.
    taken: u64,
    /// The position up to which any reader has taken it: later ids were never sent.
    issued: u64,
    /// The stored events that the reader gets first.
    pub(super) replay: Option<Box<Replay>>,
    /// The number of the event where a reader without an event id starts, if the log no longer
    /// contains it.
    pub(super) behind: Option<u64>,
    /// The number up to which events were passed to the store.
    pub(super) recorded: u64,
    /// The number up to which the store has them, and readers may take them. `u64::MAX` if readers
    /// do not wait for that.
    pub(super) stored: u64,
    /// Whether events have ids, so that a reader can resume the stream.
    pub(super) resumable: bool,
    /// Whether a reader starts with an event that only gives it an id; otherwise it starts with an
    /// id alone.
    pub(super) primes: bool,
    /// The type of the events, if they have one.
    pub(super) kind: Option<&'static str>,
    /// Whether a response already carries it as an event stream.
    pub(super) opened: bool,
    /// The form of the response.
    pub(super) mode: ResponseMode,
    /// The request that its last message answers.
    pub(super) answers: Tag,
    /// Whether no more messages will be added.
    pub(super) done: bool,
    /// The time until which it is kept for its reader, once it is done.
    pub(super) kept_until: Option<Instant>,
}

impl Stream {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            log: Log::default(),
            reader: None,
            taken: 0,
            issued: 0,
            replay: None,
            behind: None,
            recorded: 0,
            stored: u64::MAX,
            resumable: false,
            primes: false,
            kind: None,
            opened: false,
            mode: ResponseMode::JsonWhenAlone,
            answers: Tag::NONE,
            done: false,
            kept_until: None,
        }
    }

    fn name(&self) -> Option<u32> {
        self.resumable.then_some(self.number)
    }

    /// Appends a message, whose id is given if it is a request.
    pub(super) fn push(&mut self, message: &[u8], request: Option<i64>) {
        self.log.push(self.kind, self.name(), message);
        if let Some(id) = request {
            self.log.note_request(id);
        }
    }

    /// Makes it an event stream, if it is not one yet.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-005]
    pub(super) fn open(&mut self) {
        if !self.opened {
            self.opened = true;
            self.prime();
        }
    }

    /// Gives a reader an id for resuming, if no other event is about to.
    ///
    /// Clients before 2025-11-25 do not expect events without data, so they get an id alone, which
    /// an event-stream reader stores without dispatching an event.
    // MCP 2025-03-26 basic/transports#resumability-and-redelivery [RESUME-001]
    pub(super) fn prime(&mut self) {
        if self.unread() > 0 || !self.resumable {
            return;
        }
        if self.primes {
            self.log.push_priming(self.number, None);
        } else {
            self.log.push_id(self.number);
        }
    }

    /// Appends the reconnection delay.
    pub(super) fn push_retry(&mut self, retry: Duration) {
        self.log.push_retry(retry);
    }

    /// Returns the number of bytes that the reader has not taken.
    pub(super) fn unread(&self) -> u64 {
        self.log.end() - self.taken
    }

    /// Returns the number of bytes that the reader can take now.
    #[inline]
    pub(super) fn ready(&self) -> u64 {
        if self.stored == u64::MAX {
            return self.unread();
        }
        self.stored_unread()
    }

    #[cold]
    fn stored_unread(&self) -> u64 {
        self.log.offset_of(self.stored).saturating_sub(self.taken)
    }

    /// Returns the next bytes for the reader, at most `most`.
    pub(super) fn take(&mut self, most: usize) -> &[u8] {
        let waits = self.stored != u64::MAX;
        let ready = if waits { usize::try_from(self.ready()).unwrap_or(usize::MAX) } else { most };
        if let Some(replay) = &mut self.replay {
            return replay.take(most);
        }
        let chunk = self.log.read(self.taken, most.min(ready));
        self.taken += chunk.len() as u64;
        self.issued = self.issued.max(self.taken);
        chunk
    }

    /// Detaches the reader. It loses an event that it has only taken in part.
    pub(super) fn detach(&mut self) -> Option<Key> {
        if let Some(replay) = self.replay.take() {
            self.behind = Some(replay.position());
        }
        self.taken = self.log.event_start(self.taken);
        self.reader.take()
    }

    /// Returns the number of the event where a reader without an event id starts, if the log no
    /// longer contains it.
    pub(super) fn position_behind(&self) -> Option<u64> {
        let position = self.replay.as_ref().map(|replay| replay.position()).or(self.behind);
        position.filter(|sequence| *sequence < self.log.first_sequence())
    }

    /// Starts with stored events, and continues with all events of the log.
    pub(super) fn resume_behind(&mut self, replay: Replay) {
        self.taken = self.log.start();
        self.behind = Some(replay.position());
        self.replay = Some(Box::new(replay));
    }

    /// Returns where a reader continues whose last event was `sequence`. An event that was never
    /// sent is unknown.
    #[inline]
    pub(super) fn after(&self, sequence: u64) -> Resume {
        match self.log.after(sequence) {
            Resume::At(offset) if offset > self.issued => Resume::Unknown,
            found => found,
        }
    }

    /// Notes that a client may know the ids of all events.
    pub(super) fn issue_all(&mut self) {
        self.issued = self.log.end();
    }

    /// Moves the reader to a position that [`after`](Self::after) returned.
    pub(super) const fn resume_at(&mut self, offset: u64) {
        self.behind = None;
        self.taken = offset;
    }

    /// Drops the events that the reader has taken, except for the last `events` and `bytes`.
    pub(super) fn trim(&mut self, events: usize, bytes: usize) {
        self.log.trim(self.taken, events, bytes);
    }

    /// Drops the oldest events, taken or not, until at most `events` and `bytes` are left. The last
    /// `spared` ones stay.
    pub(super) fn keep(&mut self, events: usize, bytes: usize, spared: usize) {
        let next = self.log.sequence_at(self.taken);
        self.log.keep(events, bytes, spared);
        if self.taken < self.log.start() {
            self.behind.get_or_insert(next);
        }
        self.taken = self.taken.max(self.log.start());
        self.issued = self.issued.max(self.log.start());
    }

    /// Drops the events that no reader has started to take, and returns the ids of the requests
    /// among them. A reader of stored events has to take all of them.
    pub(super) fn withdraw_unread(&mut self) -> Vec<i64> {
        if self.replay.is_none() { self.log.withdraw_from(self.taken) } else { Vec::new() }
    }

    /// Returns whether a client could resume it.
    pub(super) const fn can_resume(&self) -> bool {
        self.resumable && self.opened
    }

    /// Creates a stream whose messages are all read from the store, because another node produces
    /// them.
    pub(super) fn foreign(number: u32, primes: bool) -> Self {
        let log = Log::starting_at(u64::MAX);
        Self { log, resumable: true, primes, opened: true, ..Self::new(number) }
    }

    /// Returns whether another node produces the messages.
    pub(super) const fn is_foreign(&self) -> bool {
        self.log.first_sequence() == u64::MAX
    }

    /// Checks the invariants: a reader of stored events has the complete log after them.
    pub(super) fn assert_consistent(&self) {
        assert!(self.recorded == 0 || self.recorded == self.log.next_sequence(), "unrecorded");
        if let Some(replay) = &self.replay {
            assert!(self.reader.is_some(), "a replay without a reader");
            assert_eq!(self.taken, self.log.start(), "the log under a replay");
            assert!(replay.position() <= self.log.first_sequence(), "a replay beyond its end");
        }
    }
}
