use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// What was read and is not yet taken, in memory that is lent or that grows up to a limit.
#[derive(Debug)]
pub(super) struct Buffer<'b> {
    storage: Storage<'b>,
    /// Where the bytes that are not yet taken start, within the storage.
    start: usize,
    /// Where the free room starts.
    end: usize,
}

#[derive(Debug)]
enum Storage<'b> {
    Lent(&'b mut [u8]),
    Grown { bytes: Vec<u8>, initial: usize, limit: usize },
}

/// What a growing buffer keeps. Giving back less would cost a peer that sends 64 KiB at a time an
/// allocation for each; keeping more would let one large message weigh on an idle connection.
pub(super) const KEPT: usize = 128 * 1024;

/// The room that [`Buffer::space`] makes before it grows: a read of a few bytes is a wasted one.
const ROOM_WANTED: usize = 1024;

/// How far the bytes walk through the storage before they go back to its start: no further than
/// the caches that are near.
const WALKED: usize = 32 * 1024;

impl<'b> Buffer<'b> {
    pub(super) const fn lent(storage: &'b mut [u8]) -> Self {
        Self { storage: Storage::Lent(storage), start: 0, end: 0 }
    }

    /// One that starts with `initial` bytes, once there is something to hold.
    pub(super) const fn growing(initial: usize, limit: usize) -> Self {
        Self { storage: Storage::Grown { bytes: Vec::new(), initial, limit }, start: 0, end: 0 }
    }

    /// Where the next bytes go. Empty only while the storage is full of bytes that were not taken.
    pub(super) fn space(&mut self) -> &mut [u8] {
        self.make_room();
        let end = self.end;
        self.storage.bytes_mut().get_mut(end..).unwrap_or_default()
    }

    /// Makes room for `count` bytes more, no more than is kept by an idle buffer, and none where
    /// the storage is lent.
    pub(super) fn reserve(&mut self, count: usize) {
        if let Storage::Grown { bytes, limit, .. } = &mut self.storage {
            let length = self.end.saturating_add(count).min(*limit).min(KEPT);
            if bytes.len() < length {
                grow(bytes, length);
            }
        }
    }

    /// Takes the first `count` bytes of [`Buffer::space`] as read, at most all of it.
    pub(super) fn commit(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.capacity());
    }

    /// Copies the start of `bytes` in and says how much was taken.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> usize {
        let space = self.space();
        let count = bytes.len().min(space.len());
        space[..count].copy_from_slice(&bytes[..count]);
        self.commit(count);
        count
    }

    /// What is not yet taken.
    pub(super) fn bytes(&self) -> &[u8] {
        self.storage.bytes().get(self.start..self.end).unwrap_or_default()
    }

    /// What is not yet taken, for moving it about.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let range = self.start..self.end;
        self.storage.bytes_mut().get_mut(range).unwrap_or_default()
    }

    /// Takes the first `count` of [`Buffer::bytes`].
    pub(super) fn take(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// The last `count` bytes that were taken. They are there until room is made or all is cleared.
    pub(super) fn taken(&self, count: usize) -> &[u8] {
        &self.storage.bytes()[self.start - count..self.start]
    }

    /// Closes the gap that is left when `range` of [`Buffer::bytes`] is taken out.
    pub(super) fn remove(&mut self, range: Range<usize>) {
        let bytes = self.bytes_mut();
        let count = range.len();
        bytes.copy_within(range.end.., range.start);
        self.end -= count;
    }

    pub(super) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// The most bytes that there can ever be at once.
    pub(super) const fn limit(&self) -> usize {
        match &self.storage {
            Storage::Lent(storage) => storage.len(),
            Storage::Grown { limit, .. } => *limit,
        }
    }

    /// How much fits without growing.
    pub(super) fn capacity(&self) -> usize {
        self.storage.bytes().len()
    }

    /// Whether the room after the bytes is less than a read is worth.
    pub(super) fn is_short(&self) -> bool {
        self.capacity() - self.end < self.room_wanted()
    }

    /// Of a small buffer a part, so that it does not grow before a message asks for it.
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
        // What was taken makes room first. It is moved over only when little is left to move or the
        // room is short, so over a whole frame each byte moves a bounded number of times.
        if self.start > 0 && (cheap || self.start >= length / 4 || self.end == length) {
            self.storage.bytes_mut().copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, rest);
        }
        let short = self.is_short();
        if let Storage::Grown { bytes, initial, limit } = &mut self.storage {
            if self.end == 0 && length > KEPT {
                *bytes = vec![0; KEPT.min(*limit)];
            } else if short && length < *limit {
                grow(bytes, (length * 2).max(*initial).min(*limit));
            }
        }
    }
}

/// Makes `bytes` so long and no longer: left to itself it would double beyond the limit.
fn grow(bytes: &mut Vec<u8>, length: usize) {
    bytes.reserve_exact(length - bytes.len());
    bytes.resize(length, 0);
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
