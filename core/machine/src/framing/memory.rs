use alloc::vec::Vec;

use super::buffer::{Buffer, Storage};
use super::line::Lines;

/// The memory of a decoder: lent, or growing up to a limit.
#[derive(Debug)]
pub struct Memory<'b>(Place<'b>);

#[derive(Debug)]
enum Place<'b> {
    Lent(&'b mut [u8]),
    /// The capacity is `size`, of which `bytes` are initialized: zeros that are written before the
    /// bytes of a long frame would cost more than the frame.
    Grown {
        bytes: Vec<u8>,
        size: usize,
        initial: usize,
        limit: usize,
    },
}

/// Capacity that an idle growing buffer keeps. If it kept less, a peer that sends 64 KiB at a time
/// would cause one allocation per message; if it kept more, one large message would increase the
/// memory of an idle connection.
pub(super) const KEPT: usize = 128 * 1024;

impl<'b> Buffer<Memory<'b>> {
    pub(super) const fn lent(storage: &'b mut [u8]) -> Self {
        Self::new(Memory(Place::Lent(storage)))
    }

    /// Creates a buffer that allocates `initial` bytes on first use and grows up to `limit`.
    pub(super) const fn growing(initial: usize, limit: usize) -> Self {
        Self::new(Memory(Place::Grown { bytes: Vec::new(), size: 0, initial, limit }))
    }

    /// Makes space for `count` more bytes, at most the capacity that an idle buffer keeps. Does
    /// nothing if the storage is lent.
    pub(super) fn reserve(&mut self, count: usize) {
        let end = self.end();
        if let Place::Grown { bytes, size, limit, .. } = &mut self.storage.0 {
            let length = end.saturating_add(count).min(*limit).min(KEPT);
            if *size < length {
                grow(bytes, size, length);
            }
        }
    }

    /// Returns the maximum number of bytes that the buffer can hold.
    pub(super) const fn limit(&self) -> usize {
        match &self.storage.0 {
            Place::Lent(storage) => storage.len(),
            Place::Grown { limit, .. } => *limit,
        }
    }
}

/// Makes the capacity exactly `length`. Without it, `Vec` would double the capacity beyond the
/// limit.
fn grow(bytes: &mut Vec<u8>, size: &mut usize, length: usize) {
    bytes.reserve_exact(length - bytes.len());
    *size = length;
}

impl Storage for Memory<'_> {
    fn bytes(&self) -> &[u8] {
        match &self.0 {
            Place::Lent(bytes) => bytes,
            Place::Grown { bytes, .. } => bytes,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Place::Lent(bytes) => bytes,
            Place::Grown { bytes, .. } => bytes,
        }
    }

    fn capacity(&self) -> usize {
        match &self.0 {
            Place::Lent(bytes) => bytes.len(),
            Place::Grown { size, .. } => *size,
        }
    }

    fn limit(&self) -> usize {
        match &self.0 {
            Place::Lent(bytes) => bytes.len(),
            Place::Grown { limit, .. } => *limit,
        }
    }

    fn is_oversized(&self) -> bool {
        self.capacity() > KEPT
    }

    /// Initializes at most `KEPT` bytes of memory that was not used before.
    fn initialize(&mut self, end: usize) {
        if let Place::Grown { bytes, size, .. } = &mut self.0 {
            let length = (end + KEPT).min(*size);
            if bytes.len() < length {
                bytes.resize(length, 0);
            }
        }
    }

    fn copy(&mut self, end: usize, copied: &[u8]) {
        match &mut self.0 {
            Place::Grown { bytes, .. } if bytes.len() < end + copied.len() => {
                bytes.truncate(end);
                bytes.extend_from_slice(copied);
            }
            _ => self.bytes_mut()[end..end + copied.len()].copy_from_slice(copied),
        }
    }

    fn resize(&mut self, end: usize, short: bool) {
        if let Place::Grown { bytes, size, initial, limit } = &mut self.0 {
            let length = *size;
            if end == 0 && length > KEPT {
                *size = KEPT.min(*limit);
                *bytes = Vec::with_capacity(*size);
            } else if short && length < *limit {
                // A long frame moves less often; memory that it does not reach is not touched.
                let times = if length < KEPT { 2 } else { 4 };
                grow(bytes, size, (length * times).max(*initial).min(*limit));
            }
        }
    }
}

/// Splits a byte stream into lines, in lent memory or in memory that grows up to a limit.
pub type LineDecoder<'b> = Lines<Memory<'b>>;

/// Initial capacity of a growing decoder. Most messages are shorter and most connections are idle;
/// the first longer message grows the buffer permanently.
const INITIAL: usize = 512;

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

    const fn new(buffer: Buffer<Memory<'b>>) -> Self {
        Self { buffer, searched: 0, skipping: false }
    }

    /// Makes space for `count` more bytes, for a stream that is known to have them. It is limited
    /// to the capacity that an idle decoder keeps, and does nothing if the storage is lent.
    pub fn reserve(&mut self, count: usize) {
        self.buffer.reserve(count);
    }

    /// Returns the maximum length of a line, including its line end.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.buffer.limit()
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use super::super::line::FrameError;
    use super::*;

    fn initialized(buffer: &Buffer<Memory<'_>>) -> usize {
        buffer.storage.bytes().len()
    }

    #[test]
    fn no_zeros_are_written_where_bytes_are_copied() {
        let mut buffer = Buffer::<Memory<'_>>::growing(KEPT / 8, 8 * KEPT);
        for count in 1..=64 {
            assert_eq!(buffer.feed(&[b'x'; KEPT / 16]), KEPT / 16);
            assert_eq!(initialized(&buffer), count * (KEPT / 16));
        }
        assert_eq!(buffer.storage.capacity(), 4 * KEPT);
        assert_eq!(buffer.space().len(), KEPT);
        assert_eq!(buffer.storage.capacity(), 8 * KEPT);
        assert_eq!(initialized(&buffer), 5 * KEPT);
    }

    #[test]
    fn bytes_are_kept_however_they_arrive() {
        let mut buffer = Buffer::<Memory<'_>>::growing(16, 4 * KEPT);
        let (mut expected, mut next) = (Vec::new(), 0_u8);
        for step in 0..4_000_usize {
            let count = step * 37 % 331;
            let bytes: Vec<u8> = (0..count).map(|at| next.wrapping_add(at as u8)).collect();
            let taken = if step % 3 == 0 {
                buffer.feed(&bytes)
            } else {
                let space = buffer.space();
                let count = count.min(space.len());
                space[..count].copy_from_slice(&bytes[..count]);
                buffer.commit(count);
                count
            };
            expected.extend_from_slice(&bytes[..taken]);
            next = next.wrapping_add(taken as u8);
            if step % 7 == 0 {
                let consumed = (step * 53 % 1500).min(expected.len());
                buffer.take(consumed);
                assert_eq!(buffer.taken(consumed), &expected[..consumed]);
                expected.drain(..consumed);
            }
            assert_eq!(buffer.bytes(), expected);
        }
    }

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
        let rest = decoder.handle_eof();
        outcomes.extend(rest.map(|it| it.map(|line| String::from_utf8_lossy(line).into_owned())));
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
        assert_eq!(decode(b"a\n{}"), [ok("a"), ok("{}")]);
        assert_eq!(decode(b"a\n {} \r"), [ok("a"), ok(" {}")]);
        for whole in ["[{}]", r#"{"a":[]}"#, r#"{"{":1}"#, r#"{"\"":1}"#, r#"["\\"]"#, "{a}", "}"] {
            assert_eq!(decode(whole.as_bytes()), [ok(whole)]);
        }
        for cut in ["{},", r#"{"a":{}"#, r#"{"a":[]"#, r#"{"a}"#, r#"{"a\"}"#, "[{}", "12"] {
            let length = cut.len();
            assert_eq!(decode(cut.as_bytes()), [Err(FrameError::Truncated { length })], "{cut}");
        }
        assert_eq!(decode(b""), []);
    }

    #[test]
    fn a_decoder_can_be_used_again_after_the_end_of_input() {
        let mut decoder = LineDecoder::growing(9);
        assert_eq!(decoder.feed(b"abc"), 3);
        assert_eq!(decoder.handle_eof(), Some(Err(FrameError::Truncated { length: 3 })));
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
        assert_eq!(decoder.buffer.storage.capacity(), limit);
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
