//! One lane of the transmit queue: whole frames in order, of which those of a cancelled request can
//! be withdrawn.

use alloc::boxed::Box;
use alloc::string::String;
use core::hash::BuildHasher;

use hashbrown::HashTable;
use mcp_sansio_collections::KeyedHash;

use crate::jsonrpc::RequestId;

use super::pieces::{Piece, Pieces};

/// What a frame belongs to: all that is sent for one request has the tag of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tag {
    pub(super) kind: Kind,
    pub(super) value: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Nothing that could be cancelled.
    Untied,
    /// A request of the other side, by its integer id.
    Number,
    /// The same by the hash of its string id. The hash is keyed, so two ids of one connection that
    /// have the same are not to be expected, and cannot be aimed at.
    Text,
    /// A request of this side, by its id.
    Own,
    /// It is withdrawn.
    Withdrawn,
}

impl Tag {
    /// Of what cannot be cancelled.
    pub(crate) const NONE: Self = Self { kind: Kind::Untied, value: 0 };

    /// Of what is withdrawn.
    pub(crate) const WITHDRAWN: Self = Self { kind: Kind::Withdrawn, value: 0 };

    /// Of a request of this side.
    pub(crate) const fn own(id: i64) -> Self {
        Self { kind: Kind::Own, value: id.cast_unsigned() }
    }

    /// Of a request of the other side.
    pub(crate) fn from_id(id: &RequestId, hasher: &KeyedHash) -> Self {
        match id {
            RequestId::Number(number) => Self { kind: Kind::Number, value: number.cast_unsigned() },
            RequestId::Text(text) => Self { kind: Kind::Text, value: hasher.hash_one(text) },
        }
    }
}

/// Frames in one piece of memory, and where they are in it.
///
/// What leaves when, and what counts as waiting, follows from what was pushed, withdrawn and sent
/// alone, not from how it lies in memory: a machine that is played back may have moved it at other
/// times.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) text: String,
    pub(super) head: usize,
    /// Capacity that it keeps when it is empty.
    pub(super) retained: usize,
    /// Bytes from `head` on that are on their way out: the chunk.
    pub(super) leaving: usize,
    /// What follows those. A frame is one piece, or several of which all but the last continue.
    pieces: Pieces,
    /// Where they are by their tags. Only a cancellation makes it.
    index: Option<Box<PieceIndex>>,
    hasher: KeyedHash,
}

/// Finds the pieces with a tag. They are numbered as they come, from when this was made.
#[derive(Debug, Default)]
struct PieceIndex {
    /// The number of the first piece.
    first: u64,
    /// The last piece with each tag, of those before the number `end`, as the low half of its
    /// number.
    last: HashTable<u32>,
    end: u64,
    /// The pieces that are withdrawn, and their bytes.
    withdrawn: Withdrawn,
}

#[derive(Clone, Copy, Debug, Default)]
struct Withdrawn {
    pieces: usize,
    bytes: usize,
}

/// The most that leaves at once, whole frames permitting.
pub(super) const CHUNK: usize = 64 * 1024;

/// What has left of a queue is worth moving the rest for.
pub(super) const MOVED_MIN: usize = 256;

/// What counts as waiting for each piece beside its bytes: a quarter of what is kept for it while
/// its tables grow, so that the whole costs no more than as many bytes would.
pub(super) const PIECE: usize = 32;

/// Bytes that an empty queue keeps for each place for a piece that it keeps: a message of ordinary
/// size.
const RETAINED_PER_PIECE: usize = 256;

/// What an empty queue keeps for pieces, with so much for their bytes.
pub(super) const fn pieces_retained(retained: usize) -> usize {
    retained / RETAINED_PER_PIECE * size_of::<Piece>()
}

/// The most memory that one takes of which `waiting` bytes wait, those counted for pieces included.
pub(super) const fn memory_max(waiting: usize) -> usize {
    /// The first places of its tables.
    const TABLES: usize = 512;
    // It moves once a quarter has left or is withdrawn, and grows by doubling.
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

    /// Keys the hash table of what the other side names.
    pub(super) const fn key_with(&mut self, seed: u64) {
        self.hasher = KeyedHash::with_seed(seed);
    }

    /// An empty one that is keyed as this one.
    pub(super) fn alike(&self, retained: usize) -> Self {
        Self { hasher: self.hasher.clone(), ..Self::new(retained) }
    }

    /// Bytes that wait, those on their way included.
    pub(super) fn len(&self) -> usize {
        self.text.len() - self.head - self.withdrawn().bytes
    }

    fn withdrawn(&self) -> Withdrawn {
        self.index.as_ref().map_or_else(Withdrawn::default, |index| index.withdrawn)
    }

    /// The same, and what counts for each piece of them.
    pub(super) fn held(&self) -> usize {
        self.len() + (self.pieces.len() - self.withdrawn().pieces) * PIECE
    }

    pub(super) fn chunk(&self, length: usize) -> &[u8] {
        &self.text.as_bytes()[self.head..self.head + length]
    }

    /// The next message, where nothing of it has left.
    #[cfg(any(feature = "http", test))]
    pub(super) fn message(&self, length: usize) -> &str {
        &self.text[self.head..self.head + length]
    }

    /// Notes that the last `length` bytes are a frame.
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

    /// A frame of more than 4 GiB is several pieces, and is not withdrawn.
    #[cold]
    #[allow(clippy::cast_possible_truncation, reason = "lengths and counts of parts")]
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

    /// Notes that the last bytes are an array of these messages, with a byte before each and
    /// [`ARRAY_END`] after them.
    #[allow(clippy::cast_possible_truncation, reason = "all are less than the sum")]
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

    /// Takes whole frames for the next chunk: as many as fit, the first one even if it does not.
    /// They are on their way from here on; whether there are any.
    #[inline]
    pub(super) fn select(&mut self) -> bool {
        debug_assert_eq!(self.leaving, 0, "one chunk after the other");
        if self.index.is_none() && self.text.len() - self.head <= CHUNK {
            // All of it, as nearly always.
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

    /// Takes away the first `length` bytes of the chunk.
    pub(super) fn advance(&mut self, length: usize) {
        self.leaving = self.leaving.saturating_sub(length);
        self.drop_front(length);
    }

    /// Drops everything, what is on its way included.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.index = None;
        self.leaving = 0;
        self.drop_front(self.text.len() - self.head);
    }

    /// Withdraws all that has this tag and is not on its way; whether there was anything.
    ///
    /// Takes constant time for each piece that is withdrawn, and for each that came since the last
    /// time.
    pub(super) fn withdraw(&mut self, tag: Tag) -> bool {
        let Some(mut number) = self.take_last(tag) else { return false };
        let Self { pieces, index: Some(index), .. } = self else { return false };
        while let Some(piece) = pieces.get_mut(index.place(number)) {
            let (previous, end) = (u64::from(piece.previous), u64::from(piece.end));
            index.withdrawn.note(piece);
            if end > 0
                && let Some(last) = pieces.get_mut(index.place(number + end))
            {
                // An array of which nothing is left needs no end.
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

    /// Whether anything with this tag is not on its way. Takes as long as to withdraw one piece.
    pub(super) fn is_waiting(&mut self, tag: Tag) -> bool {
        let Some(number) = self.take_last(tag) else { return false };
        if let Some(index) = &mut self.index {
            index.put_last(tag, number, &self.pieces, &self.hasher);
        }
        true
    }

    /// Takes the last piece with this tag out of the index, which it brings up to date.
    fn take_last(&mut self, tag: Tag) -> Option<u64> {
        if self.pieces.is_empty() {
            return None;
        }
        let Self { pieces, index, hasher, .. } = self;
        let index = index.get_or_insert_default();
        index.bring_up_to_date(pieces, hasher);
        index.take_last(tag, pieces, hasher)
    }

    /// Takes out the first `count` pieces, without their bytes.
    fn pop(&mut self, count: usize) {
        if let Some(index) = &mut self.index {
            index.pop(&self.pieces, count, &self.hasher);
        }
        self.pieces.drop_front(count);
        if self.pieces.is_empty() {
            self.forget();
        }
    }

    /// There are no pieces any more.
    fn forget(&mut self) {
        self.index = None;
        self.pieces.shrink_to(self.retained / RETAINED_PER_PIECE);
    }

    // ------------------------------------------------------------------ gaps

    /// Takes what is withdrawn out of the first `count` pieces, which are whole frames with nothing
    /// on its way before them: what is left moves up to what follows.
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
        // As long as what it replaces, so that nothing behind it moves.
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
            // Moves at most three times as much as was sent since the last move: constant work per
            // byte. Were it left to later, a queue that is never empty would grow far beyond what
            // waits in it.
            let moved = self.text_before(self.head);
            self.text.drain(..moved);
            self.head -= moved;
        }
    }

    /// Where the character begins that a byte is of.
    fn text_before(&self, at: usize) -> usize {
        let mut start = at;
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        start
    }

    /// Moves what waits over what is withdrawn, once that and what has left is a quarter: constant
    /// work per byte, as above.
    fn compact(&mut self) {
        let gone = self.head + self.withdrawn().bytes;
        if gone < MOVED_MIN || gone < self.text.len() / 4 {
            return;
        }
        let start = self.text_before(self.head);
        let mut at = self.head + self.leaving;
        let mut rest = String::with_capacity(self.text.len() - start - self.withdrawn().bytes);
        rest.push_str(self.text.get(start..at).unwrap_or_default());
        // How many pieces of the frame are left so far.
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
    /// The place of the piece with a number, of those that wait.
    fn place(&self, number: u64) -> usize {
        usize::try_from(number - self.first).unwrap_or(usize::MAX)
    }

    fn bring_up_to_date(&mut self, pieces: &mut Pieces, hasher: &KeyedHash) {
        let mut number = self.end;
        while let Some(piece) = pieces.get(self.place(number)) {
            if let Some(tag) = piece.tag() {
                let previous = self.take_last(tag, pieces, hasher);
                let previous = previous.map_or(0, |previous| number - previous);
                self.put_last(tag, number, pieces, hasher);
                let place = self.place(number);
                if let Some(piece) = pieces.get_mut(place) {
                    piece.previous = u32::try_from(previous).unwrap_or(0);
                }
            }
            number += 1;
        }
        self.end = number;
    }

    /// Takes the last piece with this tag out.
    fn take_last(&mut self, tag: Tag, pieces: &Pieces, hasher: &KeyedHash) -> Option<u64> {
        let first = self.first;
        let has_tag = |low: &u32| {
            let piece = pieces.get(distance(first, *low));
            piece.is_some_and(|piece| piece.kind == tag.kind && piece.value == tag.value)
        };
        let found = self.last.find_entry(hasher.hash_one(tag.value), has_tag).ok()?;
        Some(first + distance(first, found.remove().0) as u64)
    }

    fn put_last(&mut self, tag: Tag, number: u64, pieces: &Pieces, hasher: &KeyedHash) {
        let first = self.first;
        let hash_of = |low: &u32| {
            let piece = pieces.get(distance(first, *low));
            hasher.hash_one(piece.map_or(0, |piece| piece.value))
        };
        self.last.insert_unique(hasher.hash_one(tag.value), low_half(number), hash_of);
    }

    /// Forgets the first `count` pieces.
    fn pop(&mut self, pieces: &Pieces, count: usize, hasher: &KeyedHash) {
        if count < pieces.len() && !self.last.is_empty() {
            for (piece, number) in pieces.iter().zip(self.first..).take(count) {
                let low = low_half(number);
                let hash = hasher.hash_one(piece.value);
                if piece.tag().is_some()
                    && let Ok(found) = self.last.find_entry(hash, |known| *known == low)
                {
                    found.remove();
                }
            }
        }
        self.first += count as u64;
        self.end = self.end.max(self.first);
    }

    /// Forgets all pieces. Nothing is withdrawn any more.
    fn clear(&mut self) {
        self.last.clear();
        self.end = self.first;
        self.withdrawn = Withdrawn::default();
    }
}

impl Withdrawn {
    /// Withdraws a piece.
    fn note(&mut self, piece: &mut Piece) {
        piece.kind = Kind::Withdrawn;
        self.pieces += 1;
        self.bytes += piece.length();
    }
}

/// What ends an array.
pub(super) const ARRAY_END: &str = "]\n";

/// Appends a piece. The `first` one that is left of an array begins it, whatever came before.
fn push_piece(out: &mut String, piece: &str, first: bool) {
    match piece.strip_prefix(',').filter(|_| first) {
        Some(message) => {
            out.push('[');
            out.push_str(message);
        }
        None => out.push_str(piece),
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the half of a number")]
const fn low_half(number: u64) -> u32 {
    number as u32
}

/// How far a number is from `first`, by its low half. There are fewer than 2^32 pieces.
const fn distance(first: u64, low: u32) -> usize {
    low.wrapping_sub(low_half(first)) as usize
}
