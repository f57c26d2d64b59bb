use alloc::string::String;
use core::mem;
use core::ops::Range;
use core::time::Duration;

use memchr::memchr2;

use super::super::buffer::Buffer;
use super::super::memory::Memory;
use super::{FrameError, SSE_FIELD_LENGTH_MAX, SseEvent, milliseconds, set, value};

/// Initial capacity of a growing decoder: an open stream usually carries several events.
pub(super) const INITIAL: usize = 2 * 1024;

/// Decodes a stream of Server-Sent Events, in lent memory or in memory that grows up to a limit.
///
/// Read into [`SseDecoder::space`], call [`SseDecoder::commit`] with the number of bytes read, then
/// take every [`SseDecoder::next_event`]; at the end of input call [`SseDecoder::handle_eof`].
/// Events and errors do not depend on how the bytes are split over the calls.
///
/// The limit covers a line with its line end, plus the data of its event so far; comments do not
/// count. In addition the decoder keeps one event type and two ids, each at most
/// [`SSE_FIELD_LENGTH_MAX`] bytes as received.
///
/// Each byte is searched once. It is moved at most once to join the lines of an event's data, and
/// at most once more each time that the storage fills up.
///
/// ```
/// use mcp_sansio::framing::SseDecoder;
///
/// let mut decoder = SseDecoder::growing(1024);
/// decoder.feed(b"id: 7\ndata: {}\n\n");
/// let event = decoder.next_event().expect("an event")?;
/// assert_eq!((event.id, event.data), (Some("7"), &b"{}"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// MCP 2025-11-25 basic/transports#resumability-and-redelivery [SSE-012]: events are parsed as
// specified in the HTML standard, "Parsing an event stream" and "Interpreting an event stream".
#[derive(Debug)]
pub struct SseDecoder<'b> {
    /// The data of the current event, bytes that are no longer used, and the incomplete line.
    buffer: Buffer<Memory<'b>>,
    /// Length of the data at the start of the buffer: its lines, each with one byte for a line end.
    /// Zero while the event has no data.
    data: usize,
    /// Start of the incomplete line.
    line: usize,
    /// Offset up to which that line was searched without finding a line end.
    searched: usize,
    event: String,
    /// Whether `event` belongs to the previously returned event.
    event_is_old: bool,
    /// The id of the current event, valid if `has_next_id`.
    next_id: String,
    has_next_id: bool,
    /// The id of the last event that set one, valid if `has_last_id`.
    last_id: String,
    has_last_id: bool,
    /// The returned event sets `last_id`.
    sets_id: bool,
    /// An event with content has set the id of the event before it.
    repeats_id: bool,
    /// The reconnection time of the current event.
    next_retry: Option<Duration>,
    retry: Option<Duration>,
    /// Whether a byte order mark may follow.
    at_start: bool,
    /// Whether the last line ended with CR, so that a following LF belongs to its line end.
    after_cr: bool,
    /// Whether the start of the line was dropped, because it is a comment or overlong.
    dropped: bool,
    /// Whether the event was refused, so that its data is skipped.
    skipping: bool,
}

impl<'b> SseDecoder<'b> {
    /// Creates a decoder that buffers in `storage`, whose length is the limit. With empty storage
    /// the decoder accepts no bytes and yields no events.
    #[must_use]
    pub const fn lent(storage: &'b mut [u8]) -> Self {
        Self::new(Buffer::lent(storage))
    }

    /// Creates a decoder whose memory starts small, grows up to `limit` bytes, and shrinks again
    /// after a long event.
    #[must_use]
    pub const fn growing(limit: usize) -> SseDecoder<'static> {
        SseDecoder::new(Buffer::growing(INITIAL, limit))
    }

    const fn new(buffer: Buffer<Memory<'b>>) -> Self {
        Self {
            buffer,
            data: 0,
            line: 0,
            searched: 0,
            event: String::new(),
            event_is_old: false,
            next_id: String::new(),
            has_next_id: false,
            last_id: String::new(),
            has_last_id: false,
            sets_id: false,
            repeats_id: false,
            next_retry: None,
            retry: None,
            at_start: true,
            after_cr: false,
            dropped: false,
            skipping: false,
        }
    }

    /// Returns free space to read into. It is empty only while the storage is full of events
    /// that were not taken with [`SseDecoder::next_event`].
    pub fn space(&mut self) -> &mut [u8] {
        self.close_gap();
        self.buffer.space()
    }

    /// Makes space for `count` more bytes, for a stream that is known to have them. It is limited
    /// to the capacity that an idle decoder keeps, and does nothing if the storage is lent.
    pub fn reserve(&mut self, count: usize) {
        self.buffer.reserve(count);
    }

    /// Marks the first `count` bytes of [`SseDecoder::space`] as read; a larger `count` marks all
    /// of it.
    pub fn commit(&mut self, count: usize) {
        self.buffer.commit(count);
    }

    /// Copies the start of `bytes` into the buffer and returns how many bytes were copied. The rest
    /// fits once the events are taken out.
    #[must_use]
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        self.close_gap();
        self.buffer.feed(bytes)
    }

    /// Returns the next event that has a data field, even an empty one. Comments and unknown fields
    /// are skipped. Returns `None` until more bytes are committed.
    #[must_use]
    pub fn next_event(&mut self) -> Option<Result<SseEvent<'_>, FrameError>> {
        if mem::take(&mut self.event_is_old) {
            self.event.clear();
        }
        let (taken, length) = loop {
            let Some(end) = self.find_line_end() else {
                return self.refuse_overlong().map(Err);
            };
            let next = self.pass_line_end(end);
            if mem::take(&mut self.dropped) {
                self.pass(next);
            } else if end > self.line {
                self.take_field(self.line..end, next);
            } else if let Some(lengths) = self.end_event(next) {
                break lengths;
            }
        };
        self.event_is_old = true;
        let retry = self.next_retry.take();
        Some(Ok(SseEvent {
            event: if self.event.is_empty() { "message" } else { &self.event },
            data: &self.buffer.taken(taken)[..length],
            id: self.last_event_id(),
            retry,
            sets_id: self.sets_id,
        }))
    }

    /// Handles the end of input: an incomplete event is dropped together with its id. Take the
    /// events first. The last id and the reconnection time are kept, because the same decoder may
    /// read the resumed stream.
    #[must_use]
    pub fn handle_eof(&mut self) -> Option<FrameError> {
        let line = self.buffer.bytes().get(self.line..).unwrap_or_default();
        let comment = self.dropped || line.first().is_none_or(|byte| *byte == b':');
        let lost = !self.skipping && (self.data > 0 || !comment);
        let length = self.data + if comment { 0 } else { line.len() };
        self.drop_event();
        self.buffer.clear();
        (self.line, self.searched) = (0, 0);
        (self.has_next_id, self.next_retry) = (false, None);
        self.at_start = true;
        (self.after_cr, self.dropped, self.skipping) = (false, false, false);
        lost.then_some(FrameError::Truncated { length })
    }

    /// Returns the id to resume the stream after: the id of the last complete event that set one,
    /// with or without data. Returns `None` before the first id, and an empty string if the stream
    /// reset it.
    // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-004]: the value of
    // `Last-Event-ID`.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        self.has_last_id.then_some(self.last_id.as_str())
    }

    /// Returns whether an event with content has set the id of the event before it, so that the id
    /// names no position in the stream.
    pub(crate) const fn repeats_id(&self) -> bool {
        self.repeats_id
    }

    /// Returns the last reconnection time that the stream set. It takes effect when its line is
    /// complete.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-008]: how long to wait before reconnecting.
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the maximum length of a line plus the preceding data of its event, including line
    /// ends.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.buffer.limit()
    }

    #[cfg(test)]
    pub(super) fn buffer_capacity(&self) -> usize {
        super::super::buffer::Storage::capacity(&self.buffer.storage)
    }

    /// Removes the bytes between the data and the line when space is short. The gap does not
    /// reappear until the line is complete, so no byte moves twice for it.
    fn close_gap(&mut self) {
        let gap = self.data..self.line;
        if self.data > 0 && !gap.is_empty() && self.buffer.is_short() {
            self.searched -= gap.len();
            self.line = self.data;
            self.buffer.remove(gap);
        }
    }

    fn find_line_end(&mut self) -> Option<usize> {
        if self.at_start {
            self.pass_byte_order_mark()?;
        }
        if self.after_cr {
            let next = *self.buffer.bytes().get(self.line)?;
            self.after_cr = false;
            if next == b'\n' {
                self.pass(self.line + 1);
            }
        }
        let bytes = self.buffer.bytes();
        let rest = &bytes[self.searched..];
        let found = match rest.first() {
            // Every event ends with an empty line.
            Some(b'\n') => Some(0),
            _ => memchr2(b'\r', b'\n', rest),
        };
        let end = found.map(|length| self.searched + length);
        self.searched = end.unwrap_or(bytes.len());
        end
    }

    /// Returns `None` until enough bytes have arrived to detect a mark.
    #[cold]
    fn pass_byte_order_mark(&mut self) -> Option<()> {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        let bytes = self.buffer.bytes();
        if bytes.starts_with(MARK) {
            self.buffer.take(MARK.len());
        } else if MARK.starts_with(bytes) && bytes.len() < self.limit() {
            return None;
        }
        self.at_start = false;
        Some(())
    }

    /// Returns the start of the line after the one that ends at `end`.
    fn pass_line_end(&mut self, end: usize) -> usize {
        let bytes = self.buffer.bytes();
        if bytes[end] == b'\r' {
            match bytes.get(end + 1) {
                Some(b'\n') => return end + 2,
                Some(_) => {}
                None => self.after_cr = true,
            }
        }
        end + 1
    }

    /// Continues at `next`. Without data, the bytes before `next` are consumed.
    fn pass(&mut self, next: usize) {
        if self.data == 0 {
            self.buffer.take(next);
            (self.line, self.searched) = (0, 0);
        } else {
            (self.line, self.searched) = (next, next);
        }
    }

    // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [SSE-013]: a comment has
    // an empty field name here, and like every unknown field it is ignored.
    fn take_field(&mut self, line: Range<usize>, next: usize) {
        let bytes = &self.buffer.bytes()[line.clone()];
        if let Some(value) = value(bytes, b"data") {
            let length = value.len();
            if !self.skipping {
                return self.take_data(line.end - length..line.end, next);
            }
        } else if let Some(value) = value(bytes, b"event") {
            match value {
                // An empty type means `message`.
                b"message" => self.event.clear(),
                _ => set(&mut self.event, &value[..value.len().min(SSE_FIELD_LENGTH_MAX)]),
            }
        } else if let Some(value) = value(bytes, b"id") {
            if !value.contains(&0) {
                let kept = if value.len() > SSE_FIELD_LENGTH_MAX { &[][..] } else { value };
                set(&mut self.next_id, kept);
                self.has_next_id = true;
            }
        } else if let Some(value) = value(bytes, b"retry")
            && let Some(retry) = milliseconds(value)
        {
            self.next_retry = Some(retry);
            self.retry = Some(retry);
        }
        self.pass(next);
    }

    /// The first line of data stays in place; later lines move up to it.
    fn take_data(&mut self, value: Range<usize>, next: usize) {
        let length = value.len() + 1;
        if self.data == 0 {
            self.buffer.take(value.start);
            self.line = next - value.start;
        } else {
            let bytes = self.buffer.bytes_mut();
            bytes[self.data - 1] = b'\n';
            bytes.copy_within(value, self.data);
            self.line = next;
        }
        self.data += length;
        self.searched = self.line;
    }

    /// Ends the event at a blank line. Returns how many bytes to consume and how many of them are
    /// data, if the event has data.
    fn end_event(&mut self, next: usize) -> Option<(usize, usize)> {
        self.sets_id = mem::take(&mut self.has_next_id);
        if self.sets_id {
            let repeats = self.has_last_id && self.next_id == self.last_id;
            self.repeats_id |= repeats && !self.next_id.is_empty() && self.data > 1;
            mem::swap(&mut self.last_id, &mut self.next_id);
            self.has_last_id = true;
        }
        let data = mem::take(&mut self.data);
        self.pass(next);
        if data > 0 {
            return Some((next, data - 1));
        }
        self.skipping = false;
        self.event.clear();
        self.next_retry = None;
        None
    }

    /// Checks, when no line end was found, whether the event is too long. Reports each such event
    /// once.
    fn refuse_overlong(&mut self) -> Option<FrameError> {
        let bytes = self.buffer.bytes();
        let line = bytes.get(self.line..).unwrap_or_default();
        let comment = self.dropped || line.first() == Some(&b':');
        // A gap between the data and the line can still be closed to make space.
        let full = bytes.len() == self.limit() && self.line == self.data;
        if line.is_empty() || !(comment || full) {
            return None;
        }
        self.dropped = true;
        if comment {
            self.buffer.remove(self.line..bytes.len());
            self.searched = self.line;
            return None;
        }
        self.drop_event();
        self.buffer.clear();
        (self.line, self.searched) = (0, 0);
        let first = !mem::replace(&mut self.skipping, true);
        first.then_some(FrameError::TooLong { limit: self.limit() })
    }

    /// Drops the data and the type, and keeps the incomplete line.
    fn drop_event(&mut self) {
        self.data = 0;
        self.event.clear();
        self.event_is_old = false;
    }
}
