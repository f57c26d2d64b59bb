//! One lane of the transmit queue: complete frames in order, from which the frames of a cancelled
//! request can be withdrawn.

use alloc::boxed::Box;
use alloc::string::String;
use core::hash::BuildHasher;

use mcp_sansio_collections::{Index, KeyedHash};

use crate::jsonrpc::RequestId;

use super::pieces::{Piece, Pieces};

/// Identifies the request of a frame: all messages sent for one request have the tag of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tag {
    pub(super) kind: Kind,
    pub(super) value: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// Messages that cannot be cancelled.
    Untied,
    /// A request of the peer with an integer id.
    Number,
    /// A request of the peer with a string id, by its hash. The hash is keyed, so collisions within
    /// a connection are not expected and cannot be caused on purpose.
    Text,
    /// A request of this side, by its id.
    Own,
    /// Withdrawn messages.
    Withdrawn,
}

impl Tag {
    /// The tag of messages that cannot be cancelled.
    pub(crate) const NONE: Self = Self { kind: Kind::Untied, value: 0 };

    /// The tag of withdrawn messages.
    pub(crate) const WITHDRAWN: Self = Self { kind: Kind::Withdrawn, value: 0 };

    /// Returns the tag for a request of this side.
    pub(crate) const fn own(id: i64) -> Self {
        Self { kind: Kind::Own, value: id.cast_unsigned() }
    }

    /// Returns the tag for a request of the peer.
    pub(crate) fn from_id(id: &RequestId, hasher: &KeyedHash) -> Self {
        match id {
            RequestId::Number(number) => Self { kind: Kind::Number, value: number.cast_unsigned() },
            RequestId::Text(text) => Self { kind: Kind::Text, value: hasher.hash_one(text) },
        }
    }
}

/// Frames in one buffer, with their positions.
///
/// The order of output and the number of queued bytes depend only on pushed, withdrawn and sent
/// frames, not on the memory layout: a replayed machine may have moved its buffer at other times.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) text: String,
    pub(super) head: usize,
    /// Capacity to keep when the queue is empty.
    pub(super) retained: usize,
    /// Number of bytes from `head` on that are being sent: the current chunk.
    pub(super) leaving: usize,
    /// The pieces after the chunk. A frame is one piece, or several.
    pieces: Pieces,
    /// Index of the pieces by tag, created by the first cancellation.
    index: Option<Box<PieceIndex>>,
    hasher: KeyedHash,
}

/// Finds the pieces with a tag. Pieces are numbered in order since the index was created.
#[derive(Debug, Default)]
struct PieceIndex {
    /// Number of the first piece.
    first: u64,
    /// The number of the last piece with each tag among the pieces before number `end`.
    last: Index,
    end: u64,
    /// Count and size of the withdrawn pieces.
    withdrawn: Withdrawn,
}

#[derive(Clone, Copy, Debug, Default)]
struct Withdrawn {
    pieces: usize,
    bytes: usize,
}

/// Maximum size of a chunk, unless a single frame is longer.
pub(super) const CHUNK: usize = 64 * 1024;

/// Number of sent bytes that justifies moving the rest.
pub(super) const MOVED_MIN: usize = 256;

/// Size that each piece adds to the queued bytes: a fifth of its memory while the tables grow, so
/// that short pieces are limited, too.
pub(super) const PIECE: usize = 32;

/// Retained bytes per retained piece, for an empty queue: a message of ordinary size.
const RETAINED_PER_PIECE: usize = 256;

/// Memory for pieces that an empty queue keeps if it retains `retained` bytes.
pub(super) const fn pieces_retained(retained: usize) -> usize {
    retained / RETAINED_PER_PIECE * size_of::<Piece>()
}

/// Returns the maximum memory of a queue with `waiting` queued bytes, including those counted for
/// pieces.
pub(super) const fn memory_max(waiting: usize) -> usize {
    /// Initial size of the tables.
    const TABLES: usize = 512;
    // The buffer moves once a quarter of it is sent or withdrawn, and grows by doubling.
    let length = waiting.saturating_add(waiting / 3).saturating_add(MOVED_MIN);
    length.saturating_mul(3).saturating_add(TABLES)
}

impl Queue {
    pub(super) fn new(retained: usize) -> Self {
        Self {
            text: String::new(),
            head: 0,
            retained,
            leaving: 0,
            pieces: Pieces::default(),
            index: None,
            hasher: KeyedHash::default(),
        }
    }

    /// Sets the seed of the hash table for names that the peer chooses.
    pub(super) const fn key_with(&mut self, seed: u64) {
        self.hasher = KeyedHash::with_seed(seed);
    }

    /// Creates an empty queue with the same hash seed.
    pub(super) fn alike(&self, retained: usize) -> Self {
        Self { hasher: self.hasher.clone(), ..Self::new(retained) }
    }

    /// Returns the number of queued bytes, including those being sent.
    pub(super) fn len(&self) -> usize {
        self.text.len() - self.head - self.withdrawn().bytes
    }

    fn withdrawn(&self) -> Withdrawn {
        self.index.as_ref().map_or_else(Withdrawn::default, |index| index.withdrawn)
    }

    /// Like [`len`](Self::len), plus the overhead of each piece.
    pub(super) fn held(&self) -> usize {
        self.len() + (self.pieces.len() - self.withdrawn().pieces) * PIECE
    }

    pub(super) fn chunk(&self, length: usize) -> &[u8] {
        &self.text.as_bytes()[self.head..self.head + length]
    }

    /// Returns the next message, if no byte of it was sent.
    #[cfg(any(feature = "http", test))]
    pub(super) fn message(&self, length: usize) -> &str {
        &self.text[self.head..self.head + length]
    }

    /// Records that the last `length` bytes are a frame.
    #[inline]
    pub(super) fn note(&mut self, tag: Tag, length: usize) {
        let Tag { kind, value } = tag;
        match u32::try_from(length) {
            Ok(length) => {
                self.pieces.push_back(Piece { value, length, previous: 0, end: 0, kind });
            }
            Err(_) => self.note_huge(length),
        }
    }

    /// Records a frame of more than 4 GiB as several pieces that cannot be withdrawn.
    #[cold]
    #[allow(clippy::cast_possible_truncation, reason = "each part fits into 32 bits")]
    fn note_huge(&mut self, length: usize) {
        const LENGTH: usize = 1 << 31;
        let count = length.div_ceil(LENGTH);
        let (mut at, end) = (self.text.len() - length, self.text.len());
        for end_in in (0..count).rev() {
            let next = if end_in > 0 { self.text_before(at + LENGTH) } else { end };
            let (length, end) = ((next - at) as u32, end_in as u32);
            let (value, previous, kind) = (0, 0, Kind::Untied);
            self.pieces.push_back(Piece { value, length, previous, end, kind });
            at = next;
        }
    }

    /// Records that the last bytes are an array of these messages, with one byte before each and
    /// [`ARRAY_END`] after them.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "each length is less than the sum, which fits"
    )]
    pub(super) fn note_array(&mut self, messages: &[(Tag, &str)]) {
        let length: usize = messages.iter().map(|(_, message)| message.len() + 1).sum();
        if u32::try_from(length).is_err() {
            return self.note_huge(length + ARRAY_END.len());
        }
        let count = messages.len();
        for ((Tag { kind, value }, message), at) in messages.iter().copied().zip(0..) {
            let (length, end) = (message.len() as u32 + 1, (count - at) as u32);
            self.pieces.push_back(Piece { value, length, previous: 0, end, kind });
        }
        let (value, length) = (count as u64, ARRAY_END.len() as u32);
        self.pieces.push_back(Piece { value, length, previous: 0, end: 0, kind: Kind::Untied });
    }

    /// Selects complete frames for the next chunk: as many as fit, and at least one. They are being
    /// sent from now on. Returns whether there are any.
    #[inline]
    pub(super) fn select(&mut self) -> bool {
        debug_assert_eq!(self.leaving, 0, "one chunk at a time");
        if self.index.is_none() && self.text.len() - self.head <= CHUNK {
            // All queued bytes fit in nearly all cases.
            self.leaving = self.text.len() - self.head;
            self.pieces.first = None;
            if self.pieces.rest.is_some() {
                self.pieces.clear();
                self.forget();
            }
            return self.leaving > 0;
        }
        self.select_frames()
    }

    fn select_frames(&mut self) -> bool {
        let (mut length, mut count) = (0, 0);
        let (mut frame, mut gaps) = (0, 0);
        for (piece, at) in self.pieces.iter().zip(1..) {
            if piece.is_withdrawn() {
                gaps += piece.length();
            } else {
                frame += piece.length();
            }
            if piece.end == 0 {
                if length > 0 && length + frame > CHUNK {
                    break;
                }
                length += core::mem::take(&mut frame);
                count = at;
            }
        }
        if gaps > 0 {
            self.close_gaps(count);
        }
        self.pop(count);
        self.leaving = length;
        length > 0
    }

    /// Removes the first `length` bytes of the chunk.
    pub(super) fn advance(&mut self, length: usize) {
        self.leaving = self.leaving.saturating_sub(length);
        self.drop_front(length);
    }

    /// Drops all frames, including those being sent.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.index = None;
        self.leaving = 0;
        self.drop_front(self.text.len() - self.head);
    }

    /// Withdraws all messages with this tag that are not being sent, and returns whether there were
    /// any.
    ///
    /// Takes constant time for each withdrawn piece and for each piece pushed since the last call.
    pub(super) fn withdraw(&mut self, tag: Tag) -> bool {
        let Some(mut number) = self.take_last(tag) else { return false };
        let Self { pieces, index: Some(index), .. } = self else { return false };
        while let Some(piece) = pieces.get_mut(index.place(number)) {
            let (previous, end) = (u64::from(piece.previous), u64::from(piece.end));
            index.withdrawn.note(piece);
            if end > 0
                && let Some(last) = pieces.get_mut(index.place(number + end))
            {
                // An empty array needs no end.
                last.value -= 1;
                if last.value == 0 {
                    index.withdrawn.note(last);
                }
            }
            if previous == 0 || number - previous < index.first {
                break;
            }
            number -= previous;
        }
        self.compact();
        true
    }

    /// Returns whether messages with this tag are queued and not being sent. Costs as much as
    /// withdrawing one piece.
    pub(super) fn is_waiting(&mut self, tag: Tag) -> bool {
        let Some(number) = self.take_last(tag) else { return false };
        if let Some(index) = &mut self.index {
            index.put_last(tag, number, &self.hasher);
        }
        true
    }

    /// Updates the index and removes the last piece with this tag from it.
    fn take_last(&mut self, tag: Tag) -> Option<u64> {
        if self.pieces.is_empty() {
            return None;
        }
        let Self { pieces, index, hasher, .. } = self;
        let index = index.get_or_insert_default();
        index.bring_up_to_date(pieces, hasher);
        index.take_last(tag, pieces, hasher)
    }

    /// Removes the first `count` pieces, but not their bytes.
    fn pop(&mut self, count: usize) {
        if let Some(index) = &mut self.index {
            index.pop(&self.pieces, count, &self.hasher);
        }
        self.pieces.drop_front(count);
        if self.pieces.is_empty() {
            self.forget();
        }
    }

    /// Resets the index after the last piece was removed.
    fn forget(&mut self) {
        self.index = None;
        self.pieces.shrink_to(self.retained / RETAINED_PER_PIECE);
    }

    // ------------------------------------------------------------------ gaps

    /// Removes the withdrawn pieces from the first `count` pieces, which are complete frames at the
    /// head of the queue. The remaining bytes move up to the following frame.
    fn close_gaps(&mut self, count: usize) {
        let (mut end, mut gaps) = (self.head, Withdrawn::default());
        for piece in self.pieces.iter().take(count) {
            end += piece.length();
            if piece.is_withdrawn() {
                gaps.pieces += 1;
                gaps.bytes += piece.length();
            }
        }
        if let Some(index) = &mut self.index {
            index.withdrawn.pieces -= gaps.pieces;
            index.withdrawn.bytes -= gaps.bytes;
        }
        // The replacement has the same length, so that the following bytes stay in place.
        let mut moved = String::with_capacity(end - self.head);
        moved.extend(core::iter::repeat_n(' ', gaps.bytes));
        let (mut at, mut first) = (self.head, true);
        for piece in self.pieces.iter().take(count) {
            let next = at + piece.length();
            if !piece.is_withdrawn() {
                push_piece(&mut moved, self.text.get(at..next).unwrap_or_default(), first);
            }
            first = piece.end == 0 || (first && piece.is_withdrawn());
            at = next;
        }
        self.text.replace_range(self.head..end, &moved);
        self.drop_front(gaps.bytes);
    }

    fn drop_front(&mut self, length: usize) {
        self.head += length;
        if self.head == self.text.len() {
            self.head = 0;
            self.text.clear();
            if self.text.capacity() > self.retained {
                self.text.shrink_to(self.retained);
            }
        } else if self.head >= MOVED_MIN && self.head >= self.text.len() / 4 {
            // Moves at most three times the number of bytes sent since the last move, which is
            // constant work per byte. Without this move, a queue that is never empty would grow far
            // beyond its queued bytes.
            let moved = self.text_before(self.head);
            self.text.drain(..moved);
            self.head -= moved;
        }
    }

    /// Returns the start of the character that contains a byte.
    fn text_before(&self, at: usize) -> usize {
        let mut start = at;
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        start
    }

    /// Moves the queued bytes over the withdrawn ones once sent and withdrawn bytes make up a
    /// quarter of the buffer: constant work per byte.
    fn compact(&mut self) {
        let gone = self.head + self.withdrawn().bytes;
        if gone < MOVED_MIN || gone < self.text.len() / 4 {
            return;
        }
        let start = self.text_before(self.head);
        let mut at = self.head + self.leaving;
        let mut rest = String::with_capacity(self.text.len() - start - self.withdrawn().bytes);
        rest.push_str(self.text.get(start..at).unwrap_or_default());
        // Number of remaining pieces of the frame so far.
        let mut left = 0;
        for _ in 0..self.pieces.len() {
            let Some(mut piece) = self.pieces.pop_front() else { break };
            let next = at + piece.length();
            if !piece.is_withdrawn() {
                push_piece(&mut rest, self.text.get(at..next).unwrap_or_default(), left == 0);
                piece.previous = 0;
                self.pieces.push_back(piece);
                left += 1;
            }
            at = next;
            if piece.end == 0 {
                for (piece, end) in self.pieces.iter_mut().rev().take(left).zip(0..) {
                    piece.end = end;
                }
                left = 0;
            }
        }
        self.text = rest;
        self.head -= start;
        if let Some(index) = &mut self.index {
            index.clear();
        }
        if self.text.is_empty() && self.text.capacity() > self.retained {
            self.text.shrink_to(self.retained);
        }
        if self.pieces.is_empty() {
            self.forget();
        }
    }
}

impl PieceIndex {
    /// Converts the number of a queued piece to its position.
    fn place(&self, number: u64) -> usize {
        distance(self.first, number)
    }

    fn bring_up_to_date(&mut self, pieces: &mut Pieces, hasher: &KeyedHash) {
        let mut number = self.end;
        while let Some(piece) = pieces.get(self.place(number)) {
            if let Some(tag) = piece.tag() {
                let previous = self.take_last(tag, pieces, hasher);
                let previous = previous.map_or(0, |previous| number - previous);
                self.put_last(tag, number, hasher);
                let place = self.place(number);
                if let Some(piece) = pieces.get_mut(place) {
                    piece.previous = u32::try_from(previous).unwrap_or(0);
                }
            }
            number += 1;
        }
        self.end = number;
    }

    /// Removes the last piece with this tag.
    fn take_last(&mut self, tag: Tag, pieces: &Pieces, hasher: &KeyedHash) -> Option<u64> {
        let first = self.first;
        let has_tag = |number| {
            let piece = pieces.get(distance(first, number));
            piece.is_some_and(|piece| piece.kind == tag.kind && piece.value == tag.value)
        };
        self.last.remove_hashed(hasher.hash_one(tag.value), &has_tag)
    }

    fn put_last(&mut self, tag: Tag, number: u64, hasher: &KeyedHash) {
        self.last.insert_hashed(hasher.hash_one(tag.value), number);
    }

    /// Removes the first `count` pieces.
    fn pop(&mut self, pieces: &Pieces, count: usize, hasher: &KeyedHash) {
        if count < pieces.len() && !self.last.is_empty() {
            for (piece, number) in pieces.iter().zip(self.first..).take(count) {
                if piece.tag().is_some() {
                    let hash = hasher.hash_one(piece.value);
                    self.last.remove_hashed(hash, &|known| known == number);
                }
            }
        }
        self.first += count as u64;
        self.end = self.end.max(self.first);
    }

    /// Removes all pieces, including withdrawn ones.
    fn clear(&mut self) {
        self.last = Index::default();
        self.end = self.first;
        self.withdrawn = Withdrawn::default();
    }
}

impl Withdrawn {
    /// Marks a piece as withdrawn.
    fn note(&mut self, piece: &mut Piece) {
        piece.kind = Kind::Withdrawn;
        self.pieces += 1;
        self.bytes += piece.length();
    }
}

/// The text after the last message of an array.
pub(super) const ARRAY_END: &str = "]\n";

/// Appends a piece. The `first` remaining one of an array starts with the bracket.
fn push_piece(out: &mut String, piece: &str, first: bool) {
    match piece.strip_prefix(',').filter(|_| first) {
        Some(message) => {
            out.push('[');
            out.push_str(message);
        }
        None => out.push_str(piece),
    }
}

/// Returns the distance of a number from `first`.
fn distance(first: u64, number: u64) -> usize {
    usize::try_from(number.wrapping_sub(first)).unwrap_or(usize::MAX)
}
