use alloc::vec::Vec;
use core::ops::Range;

/// Bytes that were read and not yet consumed, in lent memory or in memory that grows up to a limit.
#[derive(Debug)]
pub(super) struct Buffer<'b> {
    storage: Storage<'b>,
    /// Start of the unconsumed bytes in the storage.
    start: usize,
    /// Start of the free space.
    end: usize,
}

#[derive(Debug)]
enum Storage<'b> {
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

/// Free space that [`Buffer::space`] makes before it grows, because reading only a few bytes wastes
/// a call.
const ROOM_WANTED: usize = 1024;

/// How far the bytes advance through the storage before they move back to its start. They stay
/// within the fast caches.
const WALKED: usize = 32 * 1024;

impl<'b> Buffer<'b> {
    pub(super) const fn lent(storage: &'b mut [u8]) -> Self {
        Self { storage: Storage::Lent(storage), start: 0, end: 0 }
    }

    /// Creates a buffer that allocates `initial` bytes on first use and grows up to `limit`.
    pub(super) const fn growing(initial: usize, limit: usize) -> Self {
        let storage = Storage::Grown { bytes: Vec::new(), size: 0, initial, limit };
        Self { storage, start: 0, end: 0 }
    }

    /// Returns free space to read into, at most [`KEPT`] bytes of it in memory that was not used
    /// before. It is empty only while unconsumed bytes fill the storage.
    pub(super) fn space(&mut self) -> &mut [u8] {
        self.make_room();
        let end = self.end;
        if let Storage::Grown { bytes, size, .. } = &mut self.storage {
            let length = (end + KEPT).min(*size);
            if bytes.len() < length {
                bytes.resize(length, 0);
            }
        }
        self.storage.bytes_mut().get_mut(end..).unwrap_or_default()
    }

    /// Makes space for `count` more bytes, at most the capacity that an idle buffer keeps. Does
    /// nothing if the storage is lent.
    pub(super) fn reserve(&mut self, count: usize) {
        if let Storage::Grown { bytes, size, limit, .. } = &mut self.storage {
            let length = self.end.saturating_add(count).min(*limit).min(KEPT);
            if *size < length {
                grow(bytes, size, length);
            }
        }
    }

    /// Marks the first `count` bytes of [`Buffer::space`] as filled; a larger `count` marks all of
    /// them.
    pub(super) fn commit(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.storage.bytes().len());
    }

    /// Copies the start of `bytes` into the buffer and returns how many bytes were copied.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> usize {
        self.make_room();
        let count = bytes.len().min(self.capacity() - self.end);
        let end = self.end + count;
        match &mut self.storage {
            Storage::Grown { bytes: stored, .. } if stored.len() < end => {
                stored.truncate(self.end);
                stored.extend_from_slice(&bytes[..count]);
            }
            storage => storage.bytes_mut()[self.end..end].copy_from_slice(&bytes[..count]),
        }
        self.end = end;
        count
    }

    /// Returns the unconsumed bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.storage.bytes().get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the unconsumed bytes for modification.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let range = self.start..self.end;
        self.storage.bytes_mut().get_mut(range).unwrap_or_default()
    }

    /// Consumes the first `count` of [`Buffer::bytes`].
    pub(super) fn take(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Returns the last `count` consumed bytes. They stay available until the buffer makes space or
    /// is cleared.
    pub(super) fn taken(&self, count: usize) -> &[u8] {
        &self.storage.bytes()[self.start - count..self.start]
    }

    /// Removes `range` from [`Buffer::bytes`] and closes the gap.
    pub(super) fn remove(&mut self, range: Range<usize>) {
        let bytes = self.bytes_mut();
        let count = range.len();
        bytes.copy_within(range.end.., range.start);
        self.end -= count;
    }

    pub(super) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Returns the maximum number of bytes that the buffer can hold.
    pub(super) const fn limit(&self) -> usize {
        match &self.storage {
            Storage::Lent(storage) => storage.len(),
            Storage::Grown { limit, .. } => *limit,
        }
    }

    /// Returns the current capacity, without growing.
    pub(super) const fn capacity(&self) -> usize {
        match &self.storage {
            Storage::Lent(storage) => storage.len(),
            Storage::Grown { size, .. } => *size,
        }
    }

    /// Returns whether the space after the bytes is too small for an efficient read.
    pub(super) fn is_short(&self) -> bool {
        self.capacity() - self.end < self.room_wanted()
    }

    /// Wanted free space; for a small buffer a fraction of its capacity, so that it grows only for
    /// a large message.
    fn room_wanted(&self) -> usize {
        ROOM_WANTED.min(self.capacity() / 2).max(1)
    }

    fn make_room(&mut self) {
        if self.start == self.end {
            self.clear();
        }
        let length = self.capacity();
        let rest = self.end - self.start;
        let cheap = self.start >= WALKED && rest <= self.start / 8;
        if !self.is_short() && !cheap && (self.end > 0 || length <= KEPT) {
            return;
        }
        // Space is first reclaimed from consumed bytes. The rest moves only when it is short or
        // free space runs out, so each byte of a frame moves a bounded number of times.
        if self.start > 0 && (cheap || self.start >= length / 4 || self.end == length) {
            self.storage.bytes_mut().copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, rest);
        }
        let short = self.is_short();
        if let Storage::Grown { bytes, size, initial, limit } = &mut self.storage {
            if self.end == 0 && length > KEPT {
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

/// Makes the capacity exactly `length`. Without it, `Vec` would double the capacity beyond the
/// limit.
fn grow(bytes: &mut Vec<u8>, size: &mut usize, length: usize) {
    bytes.reserve_exact(length - bytes.len());
    *size = length;
}

impl Storage<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Grown { bytes, .. } => bytes,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Grown { bytes, .. } => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initialized(buffer: &Buffer<'_>) -> usize {
        buffer.storage.bytes().len()
    }

    #[test]
    fn no_zeros_are_written_where_bytes_are_copied() {
        let mut buffer = Buffer::growing(KEPT / 8, 8 * KEPT);
        for count in 1..=64 {
            assert_eq!(buffer.feed(&[b'x'; KEPT / 16]), KEPT / 16);
            assert_eq!(initialized(&buffer), count * (KEPT / 16));
        }
        assert_eq!(buffer.capacity(), 4 * KEPT);
        assert_eq!(buffer.space().len(), KEPT);
        assert_eq!(buffer.capacity(), 8 * KEPT);
        assert_eq!(initialized(&buffer), 5 * KEPT);
    }

    #[test]
    fn bytes_are_kept_however_they_arrive() {
        let mut buffer = Buffer::growing(16, 4 * KEPT);
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
}
