use alloc::string::String;
use core::mem;
use core::ops::Range;
use core::time::Duration;

use memchr::memchr2;

use super::super::buffer::Buffer;
use super::event::{SseError, SseEvent};
use super::field::{milliseconds, set, value};

/// What the memory of a decoder starts with that grows: several events, as a stream that is open has
/// some.
pub(super) const INITIAL: usize = 2 * 1024;

/// Reads a stream of Server-Sent Events, in memory that it is lent or that it grows up to a limit.
///
/// Read into [`SseDecoder::space`], [`SseDecoder::commit`] what was read, take every
/// [`SseDecoder::next_event`]; at the end of input call [`SseDecoder::handle_eof`]. However the
/// bytes are split over the calls, the events and the errors are the same.
///
/// The limit holds for a line with its line end, together with the data of its event that came
/// before; comments do not count. Beside that memory the decoder keeps the type of one event and
/// two ids, each no longer than [`SSE_FIELD_LENGTH_MAX`](super::SSE_FIELD_LENGTH_MAX) bytes as it
/// came.
///
/// Each byte is searched once. It is moved at most once to join the lines of an event's data, and
/// at most once more for each time that the storage fills up.
// MCP 2025-11-25 basic/transports#resumability-and-redelivery [SSE-012]: events are read as the HTML standard says, in
// "Parsing an event stream" and "Interpreting an event stream".
#[derive(Debug)]
pub struct SseDecoder<'b> {
    /// The data of the event, what is of no more use, and the line that has not ended.
    buffer: Buffer<'b>,
    /// The length of the data, which stands at the head of the buffer: its lines, each with the
    /// byte after it for a line end. Zero as long as the event has no data.
    data: usize,
    /// Where the line that has not ended starts.
    line: usize,
    /// Up to where that line has no end.
    searched: usize,
    event: String,
    /// Whether `event` belongs to the event that was taken last.
    event_is_old: bool,
    /// The id that the event gives, where `has_next_id`.
    next_id: String,
    has_next_id: bool,
    /// The id of the last event that gave one, where `has_last_id`.
    last_id: String,
    has_last_id: bool,
    /// The reconnection time that the event gives.
    next_retry: Option<Duration>,
    retry: Option<Duration>,
    /// Whether a byte order mark may come.
    at_start: bool,
    /// Whether the last line ended with CR, so that LF still belongs to its end.
    after_cr: bool,
    /// Whether the start of the line was dropped: of a comment, or of a line that is too long.
    dropped: bool,
    /// Whether the event was refused, so that its data is passed over.
    skipping: bool,
}

impl<'b> SseDecoder<'b> {
    /// Decodes in `storage`, whose length is the limit. Storage of length zero takes no bytes and
    /// yields no events.
    #[must_use]
    pub const fn lent(storage: &'b mut [u8]) -> Self {
        Self::new(Buffer::lent(storage))
    }

    /// Decodes in memory that starts small, grows up to `limit` bytes, and shrinks again after a
    /// long event.
    #[must_use]
    pub const fn growing(limit: usize) -> SseDecoder<'static> {
        SseDecoder::new(Buffer::growing(INITIAL, limit))
    }

    const fn new(buffer: Buffer<'b>) -> Self {
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
            next_retry: None,
            retry: None,
            at_start: true,
            after_cr: false,
            dropped: false,
            skipping: false,
        }
    }

    /// Where the next bytes go. Empty only while the storage is full of events that were not taken
    /// with [`SseDecoder::next_event`].
    pub fn space(&mut self) -> &mut [u8] {
        self.close_gap();
        self.buffer.space()
    }

    /// Makes room for `count` bytes more, for a stream that has shown that it has them. No more than
    /// an idle decoder may keep, and none where the storage is lent.
    pub fn reserve(&mut self, count: usize) {
        self.buffer.reserve(count);
    }

    /// Takes the first `count` bytes of [`SseDecoder::space`] as read. More than there is room
    /// counts as all of it.
    pub fn commit(&mut self, count: usize) {
        self.buffer.commit(count);
    }

    /// Copies the start of `bytes` in and says how much was taken; the rest fits once the events
    /// are taken out.
    #[must_use]
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        self.close_gap();
        self.buffer.feed(bytes)
    }

    /// The next event that has data, be it empty. Comments and unknown fields are passed over.
    /// `None` until more bytes are committed.
    #[must_use]
    pub fn next_event(&mut self) -> Option<Result<SseEvent<'_>, SseError>> {
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
                if let Err(error) = self.take_field(self.line..end, next) {
                    self.drop_event();
                    self.pass(next);
                    if !mem::replace(&mut self.skipping, true) {
                        return Some(Err(error));
                    }
                }
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
        }))
    }

    /// Takes the end of input: an event that never ended is dropped, and so is its id. Take the
    /// events first. The last id and the reconnection time stay, for the stream that resumes this
    /// one and that may be read with the same decoder.
    #[must_use]
    pub fn handle_eof(&mut self) -> Option<SseError> {
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
        lost.then_some(SseError::Truncated { length })
    }

    /// The id to resume the stream after: that of the last event that ended and gave one, with or
    /// without data. `None` before there is one; empty where the stream took it back.
    // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-004]: what `Last-Event-ID` is to say.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        self.has_last_id.then_some(self.last_id.as_str())
    }

    /// The last reconnection time that the stream gave. It counts as soon as its line has ended.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-008]: how long to wait before reconnecting.
    #[must_use]
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The greatest length of a line and of the data before it in its event, line ends included.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.buffer.limit()
    }

    #[cfg(test)]
    pub(super) fn buffer_capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// When the room is short: removes what lies between the data and the line. It does not come
    /// again before the line has ended, so no byte moves twice for it.
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

    /// `None` while more bytes must say whether there is one.
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

    /// Where the line after the one that ends at `end` starts.
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

    /// Goes on at `next`. As long as there is no data, nothing before it is kept.
    fn pass(&mut self, next: usize) {
        if self.data == 0 {
            self.buffer.take(next);
            (self.line, self.searched) = (0, 0);
        } else {
            (self.line, self.searched) = (next, next);
        }
    }

    // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [SSE-013]: a comment has an empty name here,
    // and like every unknown field it is ignored.
    fn take_field(&mut self, line: Range<usize>, next: usize) -> Result<(), SseError> {
        let bytes = &self.buffer.bytes()[line.clone()];
        if let Some(value) = value(bytes, b"data") {
            let length = value.len();
            if !self.skipping {
                self.take_data(line.end - length..line.end, next);
                return Ok(());
            }
        } else if let Some(value) = value(bytes, b"event") {
            match value {
                // An empty type is read as this one.
                b"message" => self.event.clear(),
                _ => set(&mut self.event, value)?,
            }
        } else if let Some(value) = value(bytes, b"id") {
            if !value.contains(&0) {
                set(&mut self.next_id, value)?;
                self.has_next_id = true;
            }
        } else if let Some(value) = value(bytes, b"retry")
            && let Some(retry) = milliseconds(value)
        {
            self.next_retry = Some(retry);
            self.retry = Some(retry);
        }
        self.pass(next);
        Ok(())
    }

    /// The first line of data stays where it is, further ones move up to it.
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

    /// At the blank line: how much is taken, and how much of it is the data, if there is any.
    fn end_event(&mut self, next: usize) -> Option<(usize, usize)> {
        if mem::take(&mut self.has_next_id) {
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

    /// When no line end is in sight: whether the event has become too long, which is told once.
    fn refuse_overlong(&mut self) -> Option<SseError> {
        let bytes = self.buffer.bytes();
        let line = bytes.get(self.line..).unwrap_or_default();
        let comment = self.dropped || line.first() == Some(&b':');
        // As long as there is something between the data and the line, there is room to be made.
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
        first.then_some(SseError::TooLong { limit: self.limit() })
    }

    /// Lets go of the data and the type. The line that has not ended stays.
    fn drop_event(&mut self) {
        self.data = 0;
        self.event.clear();
        self.event_is_old = false;
    }
}
