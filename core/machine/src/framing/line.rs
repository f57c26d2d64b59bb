use memchr::memchr;

use super::buffer::Buffer;

/// Initial capacity of a growing decoder. Most messages are shorter and most connections are idle;
/// the first longer message grows the buffer permanently.
const INITIAL: usize = 512;

/// Splits a byte stream into lines, in lent memory or in memory that grows up to a limit.
///
/// Read into [`LineDecoder::space`], call [`LineDecoder::commit`] with the number of bytes read,
/// then take every [`LineDecoder::next_frame`]; at the end of input call
/// [`LineDecoder::handle_eof`]. Frames and errors do not depend on how the bytes are split over the
/// calls.
///
/// Each byte is searched once, and moved at most once each time that the storage fills up.
///
/// ```
/// use mcp_sansio::framing::LineDecoder;
///
/// let mut decoder = LineDecoder::growing(1024);
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
pub struct LineDecoder<'b> {
    buffer: Buffer<'b>,
    /// End of the prefix that was searched and contains no line end.
    searched: usize,
    /// Whether the bytes up to the next line end belong to an overlong line.
    skipping: bool,
}

/// A framing error between two frames, caused by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A line does not fit. It is skipped up to its end; decoding continues after it.
    #[error("a line is longer than {limit} bytes")]
    TooLong {
        /// The maximum length of a line, including its line end.
        limit: usize,
    },
    /// The input ended within a line.
    #[error("the input ended {length} bytes into a line")]
    Truncated {
        /// Number of bytes of the line that were received.
        length: usize,
    },
}

impl<'b> LineDecoder<'b> {
    /// Creates a decoder that buffers in `storage`, whose length is the limit of a line, including
    /// its line end. With empty storage the decoder accepts no bytes and yields no frames.
    #[must_use]
    pub const fn lent(storage: &'b mut [u8]) -> Self {
        Self::new(Buffer::lent(storage))
    }

    /// Creates a decoder whose memory starts small, grows up to `limit` bytes (the limit of a line,
    /// including its line end) and shrinks again after a long line.
    #[must_use]
    pub const fn growing(limit: usize) -> LineDecoder<'static> {
        LineDecoder::new(Buffer::growing(INITIAL, limit))
    }

    /// Returns the maximum heap use, in bytes, of a decoder that [grows](Self::growing) up to
    /// `limit`: while it reallocates there are two buffers. A decoder over lent memory uses no
    /// heap.
    #[must_use]
    pub const fn memory_max(limit: usize) -> usize {
        limit.saturating_mul(2).saturating_add(2 * 3 * size_of::<usize>())
    }

    const fn new(buffer: Buffer<'b>) -> Self {
        Self { buffer, searched: 0, skipping: false }
    }

    /// Returns free space to read into. It is empty only while the storage is full of frames
    /// that were not taken with [`LineDecoder::next_frame`].
    pub fn space(&mut self) -> &mut [u8] {
        self.buffer.space()
    }

    /// Makes space for `count` more bytes, for a stream that is known to have them. It is limited
    /// to the capacity that an idle decoder keeps, and does nothing if the storage is lent.
    pub fn reserve(&mut self, count: usize) {
        self.buffer.reserve(count);
    }

    /// Marks the first `count` bytes of [`LineDecoder::space`] as read; a larger `count` marks all
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

    /// Returns the next complete line without its line end, `
    /// ` or `\r
    /// `. Blank lines are skipped. Returns `None` until more bytes are committed.
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

    /// Handles the end of input and reports an incomplete last line. Take the frames first.
    #[must_use]
    pub fn handle_eof(&mut self) -> Option<FrameError> {
        let rest = self.buffer.bytes();
        // An overlong line was reported when it exceeded the limit.
        let truncated = !self.skipping && !is_blank(rest);
        let length = rest.len();
        self.buffer.clear();
        self.searched = 0;
        self.skipping = false;
        truncated.then_some(FrameError::Truncated { length })
    }

    /// Returns the maximum length of a line, including its line end.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.buffer.limit()
    }

    /// Checks, when no line end was found, whether the line is too long. Reports each such line
    /// once.
    fn refuse_overlong(&mut self) -> Option<FrameError> {
        let limit = self.limit();
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

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::super::buffer::KEPT;
    use super::*;

    type Outcome = Result<String, FrameError>;

    /// Returns the output of a decoder whose input arrives in pieces of at most `piece` bytes.
    fn decode(mut decoder: LineDecoder<'_>, input: &[u8], piece: usize) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for mut bytes in input.chunks(piece) {
            while !bytes.is_empty() {
                bytes = &bytes[decoder.feed(bytes)..];
                while let Some(frame) = decoder.next_frame() {
                    outcomes.push(frame.map(|line| String::from_utf8_lossy(line).into_owned()));
                }
            }
        }
        outcomes.extend(decoder.handle_eof().map(Err));
        outcomes
    }

    fn ok(line: &str) -> Outcome {
        Ok(line.into())
    }

    #[test]
    fn lines_end_with_either_line_end_and_blank_ones_are_passed_over() {
        // Rule: [STDIO-001] [STDIO-021].
        let input = b"{}\n\r\n \t \n[1]\r\n\n x \n";
        for piece in 1..=input.len() {
            let expected = [ok("{}"), ok("[1]"), ok(" x ")];
            assert_eq!(decode(LineDecoder::growing(100), input, piece), expected);
            assert_eq!(decode(LineDecoder::lent(&mut [0; 5]), input, piece), expected);
        }
    }

    #[test]
    fn an_overlong_line_is_reported_once_and_skipped() {
        let too_long = || Err(FrameError::TooLong { limit: 4 });
        let input = b"123\n1234\n12\r\n123456789123456789\nabc\n12345";
        let expected = [ok("123"), too_long(), ok("12"), too_long(), ok("abc"), too_long()];
        for piece in 1..=input.len() {
            assert_eq!(decode(LineDecoder::lent(&mut [0; 4]), input, piece), expected);
            assert_eq!(decode(LineDecoder::growing(4), input, piece), expected);
        }
    }

    #[test]
    fn input_that_ends_within_a_line_is_reported_with_its_length() {
        let decode = |input| decode(LineDecoder::growing(9), input, 2);
        assert_eq!(decode(b"a\nbcd"), [ok("a"), Err(FrameError::Truncated { length: 3 })]);
        assert_eq!(decode(b"a\n \r"), [ok("a")]);
        assert_eq!(decode(b""), []);
    }

    #[test]
    fn a_decoder_can_be_used_again_after_the_end_of_input() {
        let mut decoder = LineDecoder::growing(9);
        assert_eq!(decoder.feed(b"abc"), 3);
        assert_eq!(decoder.handle_eof(), Some(FrameError::Truncated { length: 3 }));
        assert_eq!(decoder.handle_eof(), None);
        assert_eq!(decoder.feed(b"d\n"), 2);
        assert_eq!(decoder.next_frame(), Some(Ok(b"d".as_slice())));
        assert_eq!(decoder.next_frame(), None);
    }

    #[test]
    fn memory_grows_for_a_long_line_and_shrinks_after_it() {
        let limit = 4 * KEPT;
        let mut decoder = LineDecoder::growing(limit);
        assert_eq!(decoder.space().len(), INITIAL);
        let mut line = vec![b'x'; limit];
        line[limit - 1] = b'\n';
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            rest = &rest[decoder.feed(rest)..];
            if !rest.is_empty() {
                assert!(decoder.next_frame().is_none());
            }
        }
        assert_eq!(decoder.buffer.capacity(), limit);
        assert!(matches!(decoder.next_frame(), Some(Ok(frame)) if frame.len() == limit - 1));
        assert_eq!(decoder.space().len(), KEPT);
    }

    #[test]
    fn the_buffer_grows_on_request_within_its_limit() {
        let mut decoder = LineDecoder::growing(8 * KEPT);
        assert_eq!(decoder.feed(b"a"), 1);
        decoder.reserve(KEPT / 2);
        assert_eq!(decoder.space().len(), KEPT / 2);
        decoder.reserve(usize::MAX);
        assert_eq!(decoder.space().len(), KEPT - 1);
        assert_eq!(decoder.feed(b"b\n"), 2);
        assert_eq!(decoder.next_frame(), Some(Ok(b"ab".as_slice())));

        let mut decoder = LineDecoder::growing(10);
        decoder.reserve(KEPT);
        assert_eq!(decoder.space().len(), 10);
        let mut storage = [0; 10];
        let mut decoder = LineDecoder::lent(&mut storage);
        decoder.reserve(KEPT);
        assert_eq!(decoder.space().len(), 10);
    }

    #[test]
    fn storage_of_length_zero_is_inert() {
        let mut decoder = LineDecoder::lent(&mut []);
        assert_eq!(decoder.feed(b"a\n"), 0);
        assert_eq!(decoder.next_frame(), None);
        assert_eq!(decoder.handle_eof(), None);
    }

    #[test]
    fn committing_more_than_the_space_commits_the_space() {
        let mut storage = [b' '; 3];
        let mut decoder = LineDecoder::lent(&mut storage);
        decoder.commit(usize::MAX);
        assert_eq!(decoder.next_frame(), Some(Err(FrameError::TooLong { limit: 3 })));
        assert_eq!(decoder.next_frame(), None);
    }
}
