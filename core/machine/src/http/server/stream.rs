use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::peer::queue::Tag;

use super::log::{Log, Resume};
use super::replay::Replay;

/// One stream of messages to a client: what answers a request, or what comes unasked.
///
/// It outlives the connections that carry it: its reader may go and come back.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) number: u32,
    pub(super) log: Log,
    /// The exchange that carries the stream now.
    pub(super) reader: Option<Key>,
    /// The place in the log up to which the reader has taken it.
    taken: u64,
    /// The place up to which any reader has ever taken it: ids after it were never sent.
    issued: u64,
    /// The stored events that the reader gets first.
    pub(super) replay: Option<Box<Replay>>,
    /// The number of the event at which a reader goes on that names none, where that is not kept in
    /// the log any more.
    pub(super) behind: Option<u64>,
    /// The number up to which events were given to the store.
    pub(super) recorded: u64,
    /// Whether events have ids, so that a reader can come back.
    pub(super) resumable: bool,
    /// Whether a reader begins with an event that only gives it an id; else with the id alone.
    pub(super) primes: bool,
    /// The type of the events, where they have one.
    pub(super) kind: Option<&'static str>,
    /// Whether a response carries it as events already.
    pub(super) opened: bool,
    /// Whether an answer that stands alone is JSON, whatever the form of others.
    pub(super) brief: bool,
    /// The request that its last message answers.
    pub(super) answers: Tag,
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
            issued: 0,
            replay: None,
            behind: None,
            recorded: 0,
            resumable: false,
            primes: false,
            kind: None,
            opened: false,
            brief: false,
            answers: Tag::NONE,
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
            self.prime();
        }
    }

    /// Gives a reader an id to come back with, where nothing else is about to.
    ///
    /// Before 2025-11-25 clients do not know of events without data, so they get none: the id goes
    /// alone, which an event-stream reader remembers without dispatching anything.
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

    /// Appends the time after which to come back.
    pub(super) fn push_retry(&mut self, retry: Duration) {
        self.log.push_retry(retry);
    }

    /// Bytes that the reader has not taken.
    pub(super) fn unread(&self) -> u64 {
        self.log.end() - self.taken
    }

    /// Hands the reader what comes next, at most `most` bytes.
    pub(super) fn take(&mut self, most: usize) -> &[u8] {
        if let Some(replay) = &mut self.replay {
            return replay.take(most);
        }
        let chunk = self.log.read(self.taken, most);
        self.taken += chunk.len() as u64;
        self.issued = self.issued.max(self.taken);
        chunk
    }

    /// Lets the reader go. What it has of an event that it took in part is lost to it.
    pub(super) fn detach(&mut self) -> Option<Key> {
        if let Some(replay) = self.replay.take() {
            self.behind = Some(replay.position());
        }
        self.taken = self.log.event_start(self.taken);
        self.reader.take()
    }

    /// The number of the event at which a reader goes on that names none, where that is not kept in
    /// the log any more.
    pub(super) fn position_behind(&self) -> Option<u64> {
        let position = self.replay.as_ref().map(|replay| replay.position()).or(self.behind);
        position.filter(|sequence| *sequence < self.log.first_sequence())
    }

    /// Begins with stored events, and goes on with all that the log keeps.
    pub(super) fn resume_behind(&mut self, replay: Replay) {
        self.taken = self.log.start();
        self.behind = Some(replay.position());
        self.replay = Some(Box::new(replay));
    }

    /// Where a reader goes on that saw the event `sequence` last. An event that was never sent
    /// cannot have been seen.
    pub(super) fn after(&self, sequence: u64) -> Resume {
        match self.log.after(sequence) {
            Resume::At(place) if place > self.issued => Resume::Unknown,
            found => found,
        }
    }

    /// Goes back, or forth, to a place that [`after`](Self::after) found.
    pub(super) const fn resume_at(&mut self, place: u64) {
        self.behind = None;
        self.taken = place;
    }

    /// Drops what the reader has taken but for the last `events` and `bytes`.
    pub(super) fn trim(&mut self, events: usize, bytes: usize) {
        self.log.trim(self.taken, events, bytes);
    }

    /// Drops the oldest, taken or not, until no more than `events` and `bytes` are left.
    pub(super) fn keep(&mut self, events: usize, bytes: usize) {
        let next = self.log.sequence_at(self.taken);
        self.log.keep(events, bytes);
        if self.taken < self.log.start() {
            self.behind.get_or_insert(next);
        }
        self.taken = self.taken.max(self.log.start());
        self.issued = self.issued.max(self.log.start());
    }

    /// Drops what no reader has begun to take, and returns its text. A reader of stored events has to
    /// take all of them.
    pub(super) fn withdraw_unread(&mut self) -> Vec<u8> {
        if self.replay.is_none() { self.log.withdraw_from(self.taken) } else { Vec::new() }
    }

    /// Whether a client could come back for it.
    pub(super) const fn can_resume(&self) -> bool {
        self.resumable && self.opened
    }

    /// A reader of stored events has all of the log before it.
    pub(super) fn assert_consistent(&self) {
        assert!(self.recorded == 0 || self.recorded == self.log.next_sequence(), "unrecorded");
        if let Some(replay) = &self.replay {
            assert!(self.reader.is_some(), "a replay for nobody");
            assert_eq!(self.taken, self.log.start(), "the log under a replay");
            assert!(replay.position() <= self.log.first_sequence(), "a replay beyond its end");
        }
    }
}
