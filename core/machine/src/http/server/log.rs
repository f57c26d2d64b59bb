use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::time::Duration;

use arrayvec::ArrayString;

use crate::framing::{write_event, write_event_id, write_retry};

/// The encoded events of one stream: those that its reader has not taken yet, and a limited number
/// of older events for a reader that lost its connection.
///
/// A position in the log is an offset in bytes from the first byte of the stream, so that it stays
/// valid when older events are dropped.
#[derive(Debug, Default)]
pub(super) struct Log {
    bytes: Vec<u8>,
    /// Dropped bytes at the front that are not yet overwritten.
    stale: usize,
    /// The position of the first byte that is kept.
    start: u64,
    /// The end and the number of each kept event.
    events: VecDeque<Logged>,
    /// The requests among the kept events, which are few: the end of the event, and the request id.
    requests: VecDeque<(u64, i64)>,
    next_sequence: u64,
    /// The sequence number after the last dropped event.
    dropped: u64,
}

#[derive(Clone, Copy, Debug)]
struct Logged {
    end: u64,
    /// The next sequence number: one more than before this event, if it has an id.
    next: u64,
}

/// The id of an event within a session: its stream, and its number in that stream.
// MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-002] [RESUME-003]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventId {
    pub(super) stream: u32,
    pub(super) sequence: u64,
}

impl EventId {
    /// Parses the `Last-Event-ID` of a client.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let text = core::str::from_utf8(text).ok()?;
        let (stream, sequence) = text.split_once('-')?;
        // Each event has one spelling: no signs, no leading zeros.
        let number = |digits: &str| -> Option<u64> {
            let canonical = digits == "0" || !digits.starts_with(['0', '+']);
            if canonical { digits.parse().ok() } else { None }
        };
        Some(Self { stream: number(stream)?.try_into().ok()?, sequence: number(sequence)? })
    }

    /// Returns the id as it is sent. Formatting with `write!` would take longer than the rest of an
    /// event.
    fn spell(self) -> ArrayString<{ Self::LENGTH_MAX }> {
        let mut text = ArrayString::new();
        text.push_str(itoa::Buffer::new().format(self.stream));
        text.push('-');
        text.push_str(itoa::Buffer::new().format(self.sequence));
        text
    }

    /// The digits of 2^32 and of 2^64, and the hyphen.
    const LENGTH_MAX: usize = 31;
}

/// The position from which a reader continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// At this position.
    At(u64),
    /// The events after the given one were dropped.
    Dropped,
    /// No such event was ever sent.
    Unknown,
}

impl Log {
    /// Creates an empty log whose next event has the number `sequence`.
    pub(super) fn starting_at(sequence: u64) -> Self {
        Self { next_sequence: sequence, dropped: sequence, ..Self::default() }
    }

    /// Appends a message, with an id if `stream` is given.
    pub(super) fn push(&mut self, kind: Option<&str>, stream: Option<u32>, message: &[u8]) {
        self.append(kind, stream, None, message);
    }

    /// Notes that the last event is a request with this id.
    pub(super) fn note_request(&mut self, id: i64) {
        self.requests.push_back((self.end(), id));
    }

    /// Appends an event without data, which gives the reader an id for resuming.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-005]
    pub(super) fn push_priming(&mut self, stream: u32, retry: Option<Duration>) {
        self.append(None, Some(stream), retry, b"");
    }

    /// Appends only an id, for readers that must not see an event without data.
    pub(super) fn push_id(&mut self, stream: u32) {
        let id = self.draw_id(stream);
        let written = write_event_id(&mut self.bytes, &id);
        debug_assert!(written.is_ok(), "the id is valid");
        self.note_event();
    }

    /// Appends the reconnection delay of the reader. It has no id, because a reader never resumes
    /// at it.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-007]
    pub(super) fn push_retry(&mut self, retry: Duration) {
        write_retry(&mut self.bytes, retry);
        self.note_event();
    }

    fn append(
        &mut self,
        kind: Option<&str>,
        stream: Option<u32>,
        retry: Option<Duration>,
        data: &[u8],
    ) {
        let id = stream.map(|stream| self.draw_id(stream));
        let written = write_event(&mut self.bytes, kind, id.as_deref(), retry, data);
        debug_assert!(written.is_ok(), "the type and the id are valid");
        self.note_event();
    }

    /// Returns the id of the next event.
    fn draw_id(&mut self, stream: u32) -> ArrayString<{ EventId::LENGTH_MAX }> {
        let id = EventId { stream, sequence: self.next_sequence };
        self.next_sequence += 1;
        id.spell()
    }

    fn note_event(&mut self) {
        let (end, next) = (self.end(), self.next_sequence);
        self.events.push_back(Logged { end, next });
    }

    /// Returns the position after the last event.
    pub(super) fn end(&self) -> u64 {
        self.start + self.len() as u64
    }

    /// Returns the position of the oldest kept event.
    pub(super) const fn start(&self) -> u64 {
        self.start
    }

    /// Returns the number of the next event.
    pub(super) const fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Returns the number of the oldest kept event, or of the next event if none is kept.
    pub(super) const fn first_sequence(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of the first event at or after a position between two events.
    pub(super) fn sequence_at(&self, offset: u64) -> u64 {
        let before = self.count_before(offset);
        before.checked_sub(1).map_or(self.dropped, |last| self.events[last].next)
    }

    /// Returns how many events end before a position.
    fn count_before(&self, offset: u64) -> usize {
        match self.events.back() {
            // Most readers have taken everything or nothing.
            Some(last) if last.end <= offset => self.events.len(),
            Some(_) if offset > self.start => self.events.partition_point(|it| it.end <= offset),
            _ => 0,
        }
    }

    /// Returns the position before the event with the number `sequence`.
    pub(super) fn offset_of(&self, sequence: u64) -> u64 {
        let before = self.events.partition_point(|event| event.next <= sequence);
        before.checked_sub(1).map_or(self.start, |last| self.events[last].end)
    }

    /// Returns the number of kept bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.stale
    }

    /// Returns the bytes after `offset`, at most `most`.
    pub(super) fn read(&self, offset: u64, most: usize) -> &[u8] {
        let from = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let rest = self.bytes.get(self.stale.saturating_add(from)..).unwrap_or_default();
        &rest[..rest.len().min(most)]
    }

    /// Returns the start of the event that contains `offset`, or `offset` if it is between two
    /// events.
    pub(super) fn event_start(&self, offset: u64) -> u64 {
        let before = self.count_before(offset);
        before.checked_sub(1).map_or(self.start, |last| self.events[last].end)
    }

    /// Returns where a reader continues whose last event was `sequence`.
    pub(super) fn after(&self, sequence: u64) -> Resume {
        if sequence >= self.next_sequence {
            return Resume::Unknown;
        }
        let following = sequence + 1;
        match following.cmp(&self.dropped) {
            Ordering::Less => return Resume::Dropped,
            Ordering::Equal => return Resume::At(self.start),
            Ordering::Greater => {}
        }
        let at = self.events.partition_point(|event| event.next < following);
        self.events.get(at).map_or(Resume::Unknown, |event| Resume::At(event.end))
    }

    /// Drops the oldest events that a reader at `offset` has taken, until at most `events` and
    /// `bytes` of them are kept. If `events` is not zero, the last one stays regardless of its
    /// length, because it may not have arrived.
    pub(super) fn trim(&mut self, offset: u64, events: usize, bytes: usize) {
        let taken = self.count_before(offset);
        let taken_end = taken.checked_sub(1).map_or(self.start, |last| self.events[last].end);
        let spared = usize::from(events > 0);
        let mut count = 0;
        while count + spared < taken {
            let start = count.checked_sub(1).map_or(self.start, |last| self.events[last].end);
            if taken - count <= events && taken_end - start <= bytes as u64 {
                break;
            }
            count += 1;
        }
        self.drop_first(count);
    }

    /// Drops the oldest events, taken or not, until at most `events` and `bytes` are kept. The last
    /// `spared` ones stay regardless of their length: the last one may be the response.
    pub(super) fn keep(&mut self, events: usize, bytes: usize, spared: usize) {
        while self.events.len() > spared && (self.events.len() > events || self.len() > bytes) {
            self.drop_first(1);
        }
    }

    /// Drops the events that begin at or after `offset`, and returns the ids of the requests among
    /// them. Their numbers are not reused.
    pub(super) fn withdraw_from(&mut self, offset: u64) -> Vec<i64> {
        let before = self.count_before(offset);
        let end_of = |count: usize, log: &Self| {
            count.checked_sub(1).map_or(log.start, |last| log.events[last].end)
        };
        // An event that contains `offset` is kept.
        let within = end_of(before, self) < offset && before < self.events.len();
        let kept = before + usize::from(within);
        let end = end_of(kept, self);
        let length = usize::try_from(end - self.start).unwrap_or(usize::MAX);
        self.events.truncate(kept);
        self.bytes.truncate(self.stale.saturating_add(length));
        let requests = self.requests.partition_point(|(request_end, _)| *request_end <= end);
        self.requests.drain(requests..).map(|(_, id)| id).collect()
    }

    fn drop_first(&mut self, count: usize) {
        let mut end = self.start;
        for event in self.events.drain(..count) {
            end = event.end;
            self.dropped = event.next;
        }
        let length = usize::try_from(end - self.start).unwrap_or(usize::MAX);
        self.start = end;
        while self.requests.front().is_some_and(|(request_end, _)| *request_end <= end) {
            self.requests.pop_front();
        }
        self.stale = self.stale.saturating_add(length).min(self.bytes.len());
        // Moves at most as many bytes as were dropped since the last move: constant work per byte.
        if self.stale >= self.bytes.len() / 2 {
            self.bytes.drain(..self.stale);
            self.stale = 0;
        }
        // An idle stream releases the memory of its peak.
        if self.bytes.capacity() > RETAINED && self.bytes.len() < self.bytes.capacity() / 4 {
            self.bytes.shrink_to(self.bytes.len().max(RETAINED));
        }
        if self.events.capacity() > RETAINED_EVENTS
            && self.events.len() < self.events.capacity() / 4
        {
            self.events.shrink_to(self.events.len().max(RETAINED_EVENTS));
        }
    }
}

/// The capacity that a log keeps, in bytes.
const RETAINED: usize = 1024;

/// The capacity that a log keeps for its event index.
const RETAINED_EVENTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn log(messages: &[&str]) -> Log {
        let mut log = Log::default();
        for message in messages {
            log.push(None, Some(3), message.as_bytes());
        }
        log
    }

    fn text(log: &Log, offset: u64) -> String {
        String::from_utf8(log.read(offset, usize::MAX).to_vec()).unwrap()
    }

    #[test]
    fn event_ids_round_trip() {
        for (stream, sequence) in [(0, 0), (1, 10), (u32::MAX, u64::MAX), (907, 1_000_000)] {
            let id = EventId { stream, sequence };
            assert_eq!(&*id.spell(), alloc::format!("{stream}-{sequence}"));
            assert_eq!(EventId::parse(id.spell().as_bytes()), Some(id));
        }
    }

    #[test]
    fn a_resuming_reader_gets_only_the_events_after_its_last_one() {
        // Rule: [RESUME-006].
        let log = log(&["a", "b", "c"]);
        let Resume::At(offset) = log.after(1) else { panic!() };
        assert_eq!(text(&log, offset), "id: 3-2\ndata: c\n\n");
        let Resume::At(offset) = log.after(2) else { panic!() };
        assert_eq!(text(&log, offset), "");
        assert_eq!(log.after(3), Resume::Unknown);
    }

    #[test]
    fn dropped_events_are_distinguished_from_unknown_ones() {
        let mut log = log(&["a", "b", "c", "d"]);
        log.trim(log.end(), 2, usize::MAX);
        assert_eq!(log.after(0), Resume::Dropped);
        let Resume::At(offset) = log.after(1) else { panic!() };
        assert_eq!(text(&log, offset), "id: 3-2\ndata: c\n\nid: 3-3\ndata: d\n\n");
        assert_eq!(log.after(9), Resume::Unknown);
    }

    #[test]
    fn undelivered_events_are_not_trimmed() {
        let mut log = log(&["a", "b", "c"]);
        let Resume::At(offset) = log.after(0) else { panic!() };
        log.trim(offset, 0, 0);
        assert_eq!(text(&log, offset), "id: 3-1\ndata: b\n\nid: 3-2\ndata: c\n\n");
        log.trim(log.end(), 8, 17);
        assert_eq!(log.len(), 17);
        log.trim(log.end(), 8, 1);
        assert_eq!(log.len(), 17, "the last one may not have arrived");
        log.trim(log.end(), 0, 0);
        assert_eq!((log.len(), log.after(2)), (0, Resume::At(51)));
    }

    #[test]
    fn the_last_event_is_never_evicted() {
        let mut log = log(&["a", "b"]);
        log.keep(0, 0, 1);
        assert_eq!(log.after(0), Resume::At(17));
        assert_eq!(text(&log, 17), "id: 3-1\ndata: b\n\n");
    }

    #[test]
    fn a_retry_event_has_no_sequence_number() {
        let mut log = log(&["a"]);
        log.push_retry(Duration::from_millis(500));
        log.push(None, Some(3), b"b");
        let Resume::At(offset) = log.after(0) else { panic!() };
        assert_eq!(text(&log, offset), "retry: 500\n\nid: 3-1\ndata: b\n\n");
    }

    #[test]
    fn the_start_of_an_event_is_found_from_a_position_inside_it() {
        let mut log = log(&["a", "b"]);
        for (offset, start) in [(0, 0), (16, 0), (17, 17), (33, 17), (34, 34)] {
            assert_eq!(log.event_start(offset), start, "{offset}");
        }
        log.keep(1, 0, 1);
        assert_eq!(log.event_start(20), 17);
    }

    #[test]
    fn complete_events_are_withdrawn_from_a_position() {
        for (offset, left) in [(0, 0), (1, 17), (17, 17), (18, 34), (34, 34), (51, 51), (60, 51)] {
            let mut log = log(&["a", "b", "c"]);
            log.withdraw_from(offset);
            assert_eq!((log.end(), log.next_sequence()), (left, 3), "{offset}");
        }
        let mut log = log(&["a", "b", "c"]);
        log.trim(17, 0, 0);
        log.withdraw_from(17);
        assert_eq!((log.len(), log.start(), log.after(0)), (0, 17, Resume::At(17)));
        log.push(None, Some(3), b"d");
        assert_eq!(text(&log, 17), "id: 3-3\ndata: d\n\n");
    }

    #[test]
    fn the_requests_among_withdrawn_events_are_known_without_reading_them() {
        let mut log = log(&["a"]);
        log.note_request(1);
        for (message, id) in
            [("b", Some(2)), ("{\"id\":9,\"method\":\"ping\"}", None), ("d", Some(3))]
        {
            log.push(None, Some(3), message.as_bytes());
            if let Some(id) = id {
                log.note_request(id);
            }
        }
        // The first was taken.
        assert_eq!(log.withdraw_from(17), [2, 3]);
        assert_eq!(log.withdraw_from(0), [1]);
        log.push(None, Some(3), b"e");
        log.note_request(4);
        log.trim(log.end(), 0, 0);
        log.push(None, Some(3), b"f");
        assert!(log.withdraw_from(0).is_empty(), "what was dropped is not withdrawn");
    }

    #[test]
    fn event_ids_have_one_spelling() {
        let id = EventId { stream: 3, sequence: 17 };
        assert_eq!(EventId::parse(b"3-17"), Some(id));
        for bad in [
            "",
            "3",
            "3-",
            "-17",
            "03-17",
            "3-+17",
            "3-17-1",
            "4294967296-0",
            "3-\u{e9}",
            "3-18446744073709551616",
        ] {
            assert_eq!(EventId::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
