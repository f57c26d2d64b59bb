use memchr::memchr;

use super::buffer::{Buffer, Storage};

/// Splits a byte stream into lines, in lent memory or, as a `LineDecoder` with the feature `alloc`,
/// in memory that grows up to a limit.
///
/// Read into [`Lines::space`], call [`Lines::commit`] with the number of bytes read,
/// then take every [`Lines::next_frame`]; at the end of input call
/// [`Lines::handle_eof`]. Frames and errors do not depend on how the bytes are split over the
/// calls.
///
/// Each byte is searched once, and moved at most once each time that the storage fills up.
///
/// ```
/// use mcp_sansio::framing::Lines;
///
/// let mut storage = [0; 1024];
/// let mut decoder = Lines::in_storage(&mut storage);
/// assert_eq!(decoder.feed(b"{\"a\":1}\n{\"b\""), 12);
/// assert_eq!(decoder.next_frame(), Some(Ok(&b"{\"a\":1}"[..])));
/// assert_eq!(decoder.next_frame(), None);
/// assert_eq!(decoder.feed(b":2}\n"), 4);
/// assert_eq!(decoder.next_frame(), Some(Ok(&b"{\"b\":2}"[..])));
/// ```
// MCP 2026-07-28 basic/transports/stdio#sending-messages [STDIO-001]: messages are delimited
// by newlines. MCP 2026-07-28 basic/transports/index#custom-transports [STDIO-021] recommends the
// same for other byte streams.
#[derive(Debug)]
pub struct Lines<S> {
    pub(super) buffer: Buffer<S>,
    /// End of the prefix that was searched and contains no line end.
    pub(super) searched: usize,
    /// Whether the bytes up to the next line end belong to an overlong line.
    pub(super) skipping: bool,
}

/// A framing error between two frames, caused by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A line or an event does not fit, or the type or the id of an event is longer than 1 KiB. It
    /// is skipped up to its end; decoding continues after it. An id or a reconnection time in a
    /// skipped event takes effect.
    #[error("a frame of more than {limit} bytes was skipped")]
    TooLong {
        /// The maximum length of a line, including its line end; of an event, that of a line plus
        /// the preceding data.
        limit: usize,
    },
    /// The input ended within a line or an event, which is dropped.
    #[error("the input ended {length} bytes into a frame")]
    Truncated {
        /// Number of bytes that were received of the line, or of the event's data and its last line.
        length: usize,
    },
}

impl<'b> Lines<&'b mut [u8]> {
    /// Creates a decoder that buffers in `storage`, whose length is the limit of a line, including
    /// its line end. With empty storage the decoder accepts no bytes and yields no frames.
    #[must_use]
    pub const fn in_storage(storage: &'b mut [u8]) -> Self {
        Self { buffer: Buffer::new(storage), searched: 0, skipping: false }
    }
}

impl<S: Storage> Lines<S> {
    /// Returns free space to read into. It is empty only while the storage is full of frames
    /// that were not taken with [`Lines::next_frame`].
    pub fn space(&mut self) -> &mut [u8] {
        self.buffer.space()
    }

    /// Marks the first `count` bytes of [`Lines::space`] as read; a larger `count` marks all
    /// of it.
    pub fn commit(&mut self, count: usize) {
        self.buffer.commit(count);
    }

    /// Copies the start of `bytes` into the buffer and returns how many bytes were copied. The rest
    /// fits once the frames are taken out.
    #[must_use]
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        self.buffer.feed(bytes)
    }

    /// Returns the next complete line without its line end, which is a line feed or a carriage return
    /// with a line feed. Blank lines are skipped. Returns `None` until more bytes are committed.
    #[must_use]
    pub fn next_frame(&mut self) -> Option<Result<&[u8], FrameError>> {
        loop {
            let bytes = self.buffer.bytes();
            let Some(length) = memchr(b'\n', bytes.get(self.searched..).unwrap_or_default()) else {
                self.searched = bytes.len();
                return self.refuse_overlong().map(Err);
            };
            let length = self.searched + length;
            let blank = is_blank(&bytes[..length]);
            self.buffer.take(length + 1);
            self.searched = 0;
            if core::mem::take(&mut self.skipping) || blank {
                continue;
            }
            let line = &self.buffer.taken(length + 1)[..length];
            return Some(Ok(line.strip_suffix(b"\r").unwrap_or(line)));
        }
    }

    /// Handles the end of input and returns the last line, if it has no line end. Take the frames
    /// first.
    ///
    /// Programs that print one message often leave its line end out. A line that ends where its
    /// object or array does is a frame; another one was cut off.
    #[must_use]
    #[inline(never)]
    pub fn handle_eof(&mut self) -> Option<Result<&[u8], FrameError>> {
        let length = self.buffer.bytes().len();
        self.buffer.take(length);
        self.searched = 0;
        let rest = self.buffer.taken(length).trim_ascii_end();
        // An overlong line was reported when it exceeded the limit.
        if core::mem::take(&mut self.skipping) || rest.is_empty() {
            return None;
        }
        Some(if is_whole(rest) { Ok(rest) } else { Err(FrameError::Truncated { length }) })
    }

    /// Makes a line that has begun invalid, because bytes of it are lost: the rest could be another
    /// message. JSON has no zero bytes. Take the frames first.
    pub(crate) fn damage(&mut self) {
        if !self.buffer.bytes().is_empty() {
            let _ = self.feed(&[0]);
        }
    }

    /// Checks, when no line end was found, whether the line is too long. Reports each such line
    /// once.
    fn refuse_overlong(&mut self) -> Option<FrameError> {
        let limit = self.buffer.storage.limit();
        let overlong = self.buffer.bytes().len() == limit && limit > 0;
        if !overlong && !self.skipping {
            return None;
        }
        self.buffer.clear();
        self.searched = 0;
        let first = !core::mem::replace(&mut self.skipping, true);
        first.then_some(FrameError::TooLong { limit })
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Returns whether a line ends with an object or array that has begun in it.
fn is_whole(line: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth == 0 && !in_string && matches!(line.last(), Some(b'}' | b']'))
}
