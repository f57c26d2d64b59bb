use core::ops::Range;

/// Bytes that were read and not yet consumed.
#[derive(Debug)]
pub(super) struct Buffer<S> {
    pub(super) storage: S,
    /// Start of the unconsumed bytes in the storage.
    start: usize,
    /// Start of the free space.
    end: usize,
}

/// The memory of a decoder: lent, or, with the feature `alloc`, growing up to a limit.
pub trait Storage {
    /// Returns the initialized memory.
    fn bytes(&self) -> &[u8];

    /// Returns the initialized memory for modification.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Returns the current capacity, without growing.
    fn capacity(&self) -> usize {
        self.bytes().len()
    }

    /// Returns the largest capacity.
    fn limit(&self) -> usize {
        self.bytes().len()
    }

    /// Returns whether an empty buffer should be looked at again, although there is enough space.
    fn is_oversized(&self) -> bool {
        false
    }

    /// Initializes memory after `end`, to be read into.
    fn initialize(&mut self, end: usize) {
        let _ = end;
    }

    /// Copies `bytes`, which fit, to `end`.
    fn copy(&mut self, end: usize, bytes: &[u8]) {
        self.bytes_mut()[end..end + bytes.len()].copy_from_slice(bytes);
    }

    /// Grows if the space after `end` is `short`, or shrinks if there is nothing before it.
    fn resize(&mut self, end: usize, short: bool) {
        let _ = (end, short);
    }
}

impl Storage for &mut [u8] {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// Free space that `Buffer::space` makes before it grows, because reading only a few bytes wastes
/// a call.
const ROOM_WANTED: usize = 1024;

/// How far the bytes advance through the storage before they move back to its start. They stay
/// within the fast caches.
const WALKED: usize = 32 * 1024;

impl<S> Buffer<S> {
    pub(super) const fn new(storage: S) -> Self {
        Self { storage, start: 0, end: 0 }
    }

    pub(super) const fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }
}

impl<S: Storage> Buffer<S> {
    /// Returns free space to read into. It is empty only while unconsumed bytes fill the storage.
    pub(super) fn space(&mut self) -> &mut [u8] {
        self.make_room();
        self.storage.initialize(self.end);
        self.storage.bytes_mut().get_mut(self.end..).unwrap_or_default()
    }

    /// Returns the start of the free space.
    pub(super) const fn end(&self) -> usize {
        self.end
    }

    /// Marks the first `count` bytes of [`Buffer::space`] as filled; a larger `count` marks all of
    /// them.
    pub(super) fn commit(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.storage.bytes().len());
    }

    /// Copies the start of `bytes` into the buffer and returns how many bytes were copied.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> usize {
        self.make_room();
        let count = bytes.len().min(self.storage.capacity() - self.end);
        self.storage.copy(self.end, &bytes[..count]);
        self.end += count;
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

    /// Returns whether the space after the bytes is too small for an efficient read.
    pub(super) fn is_short(&self) -> bool {
        let capacity = self.storage.capacity();
        // For a small buffer a fraction of its capacity, so that it grows only for a large message.
        capacity - self.end < ROOM_WANTED.min(capacity / 2).max(1)
    }

    fn make_room(&mut self) {
        if self.start == self.end {
            self.clear();
        }
        let length = self.storage.capacity();
        let rest = self.end - self.start;
        let cheap = self.start >= WALKED && rest <= self.start / 8;
        if !self.is_short() && !cheap && (self.end > 0 || !self.storage.is_oversized()) {
            return;
        }
        // Space is first reclaimed from consumed bytes. The rest moves only when it is short or
        // free space runs out, so each byte of a frame moves a bounded number of times.
        if self.start > 0 && (cheap || self.start >= length / 4 || self.end == length) {
            self.storage.bytes_mut().copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, rest);
        }
        let short = self.is_short();
        self.storage.resize(self.end, short);
    }
}
