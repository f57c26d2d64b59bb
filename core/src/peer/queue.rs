//! One lane of the transmit queue: whole frames in order, of which those of a cancelled request can
//! be withdrawn.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::index::{Index, Known};
use crate::jsonrpc::RequestId;

use super::memory::{add, table, vector};

/// What a frame belongs to: all that is sent for one request has the tag of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tag {
    kind: Kind,
    value: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
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

    /// Of a request of this side.
    pub(crate) const fn own(id: i64) -> Self {
        Self { kind: Kind::Own, value: id.cast_unsigned() }
    }

    /// Of a request of the other side.
    pub(crate) fn of(id: &RequestId, hasher: &FixedState) -> Self {
        match id {
            RequestId::Number(number) => Self { kind: Kind::Number, value: number.cast_unsigned() },
            RequestId::Text(text) => Self { kind: Kind::Text, value: hasher.hash_one(text) },
        }
    }
}

/// Frames in one piece of memory, and where they are in it.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) bytes: Vec<u8>,
    pub(super) head: usize,
    /// Capacity that it keeps when it is empty.
    pub(super) retained: usize,
    /// Bytes from `head` on that are on their way out.
    leaving: usize,
    /// What follows those. A frame is one piece, or several of which all but the last continue.
    pieces: VecDeque<Piece>,
    /// The number of the first piece.
    first: u64,
    /// Bytes of the pieces that are withdrawn.
    withdrawn: usize,
    /// The last piece with each tag, of those before the number `indexed`. Only a cancellation
    /// builds it.
    last: Index,
    indexed: u64,
    hasher: FixedState,
}

/// A part of a frame that may be withdrawn.
#[derive(Clone, Copy, Debug)]
struct Piece {
    value: u64,
    length: usize,
    /// How many pieces before this one the last with the same tag is; zero if there is none.
    previous: u32,
    kind: Kind,
    /// The frame goes on with the next piece.
    continues: bool,
}

/// The most that leaves at once, whole frames permitting.
pub(super) const CHUNK: usize = 64 * 1024;

/// What has left of a queue is worth moving the rest for.
pub(super) const MOVED_MIN: usize = 256;

/// What is kept for each piece beside its bytes, which counts as waiting as well.
pub(super) const PIECE: usize = size_of::<Piece>();

/// The shortest frame, in bytes: an empty result. A batch of one has two pieces and two bytes more.
const FRAME_LENGTH_MIN: usize = 37;

/// Bytes that an empty queue keeps for each place for a piece that it keeps: a message of ordinary
/// size.
const RETAINED_PER_PIECE: usize = 256;

/// What an empty queue keeps for pieces, with so much for their bytes.
pub(super) const fn pieces_retained(retained: usize) -> usize {
    retained / RETAINED_PER_PIECE * PIECE
}

/// The most memory that one takes of which `waiting` bytes wait, those kept for pieces included.
pub(super) const fn memory_max(waiting: usize) -> usize {
    // It moves once a quarter has left or is withdrawn, and grows by doubling.
    let length = waiting.saturating_add(waiting / 3).saturating_add(MOVED_MIN);
    let pieces = length / (FRAME_LENGTH_MIN / 2 + PIECE) + 1;
    let frames = length / (FRAME_LENGTH_MIN + PIECE) + 1;
    add(length.saturating_mul(3), add(vector::<Piece>(pieces), table::<Known>(frames)))
}

impl Queue {
    pub(super) fn new(retained: usize) -> Self {
        Self {
            bytes: Vec::new(),
            head: 0,
            retained,
            leaving: 0,
            pieces: VecDeque::new(),
            first: 0,
            withdrawn: 0,
            last: Index::default(),
            indexed: 0,
            hasher: FixedState::default(),
        }
    }

    /// Keys the hash table of what the other side names.
    pub(super) fn key_with(&mut self, seed: u64) {
        self.hasher = FixedState::with_seed(seed);
    }

    /// Bytes that wait, those on their way included.
    pub(super) const fn len(&self) -> usize {
        self.bytes.len() - self.head - self.withdrawn
    }

    /// The same, and what is kept for each piece of them.
    pub(super) fn held(&self) -> usize {
        self.len() + self.pieces.len() * PIECE
    }

    pub(super) fn chunk(&self, length: usize) -> &[u8] {
        &self.bytes[self.head..self.head + length]
    }

    /// Notes that the last `length` bytes are a piece.
    pub(super) fn note(&mut self, tag: Tag, length: usize, continues: bool) {
        let Tag { kind, value } = tag;
        self.pieces.push_back(Piece { value, length, previous: 0, kind, continues });
    }

    /// Takes whole frames for the next chunk: as many as fit, the first one even if it does not.
    /// The length of the chunk, which is on its way from here on.
    pub(super) fn select(&mut self) -> usize {
        debug_assert_eq!(self.leaving, 0, "one chunk after the other");
        let mut length = 0;
        if self.withdrawn == 0 && !self.is_indexed() && self.len() <= CHUNK {
            length = self.len();
            self.first += self.pieces.len() as u64;
            self.indexed = self.first;
            self.pieces.clear();
        } else {
            while let Some(frame) = self.first_frame() {
                if frame.withdrawn > 0 {
                    if length > 0 {
                        break;
                    }
                    self.close_gaps(frame);
                    continue;
                }
                if length > 0 && length + frame.length > CHUNK {
                    break;
                }
                for _ in 0..frame.pieces {
                    self.pop();
                }
                length += frame.length;
            }
        }
        self.leaving = length;
        if self.pieces.is_empty() {
            self.forget();
        }
        length
    }

    /// Takes away the first `length` bytes of the chunk.
    pub(super) fn advance(&mut self, length: usize) {
        self.leaving = self.leaving.saturating_sub(length);
        self.drop_front(length);
    }

    /// Withdraws all that has this tag and is not on its way; whether there was anything.
    ///
    /// Takes constant time for each piece that is withdrawn, and for each that came since the last
    /// time.
    pub(super) fn withdraw(&mut self, tag: Tag) -> bool {
        if self.pieces.is_empty() {
            return false;
        }
        self.bring_index_up_to_date();
        let Some(mut number) = self.take_last(tag) else { return false };
        while let Some(piece) = self.piece_mut(number) {
            piece.kind = Kind::Withdrawn;
            let (length, previous) = (piece.length, u64::from(piece.previous));
            self.withdrawn += length;
            if previous == 0 || number - previous < self.first {
                break;
            }
            number -= previous;
        }
        self.compact();
        true
    }

    // ------------------------------------------------------------------ the index

    const fn is_indexed(&self) -> bool {
        self.indexed > self.first
    }

    fn bring_index_up_to_date(&mut self) {
        let mut number = self.indexed.max(self.first);
        while let Some(piece) = self.piece_mut(number).copied() {
            if !matches!(piece.kind, Kind::Untied | Kind::Withdrawn) {
                let tag = Tag { kind: piece.kind, value: piece.value };
                let previous = self.take_last(tag).map_or(0, |previous| number - previous);
                self.last.insert_hashed(self.hasher.hash_one(tag.value), number);
                if let Some(piece) = self.piece_mut(number) {
                    piece.previous = u32::try_from(previous).unwrap_or(0);
                }
            }
            number += 1;
        }
        self.indexed = number;
    }

    /// Takes the last piece with this tag out of the index.
    fn take_last(&mut self, tag: Tag) -> Option<u64> {
        let Self { last, pieces, first, hasher, .. } = self;
        let has_tag = |number: u64| {
            let piece = usize::try_from(number - *first).ok().and_then(|at| pieces.get(at));
            piece.is_some_and(|it| it.kind == tag.kind && it.value == tag.value)
        };
        last.remove_hashed(hasher.hash_one(tag.value), &has_tag)
    }

    fn piece_mut(&mut self, number: u64) -> Option<&mut Piece> {
        let at = usize::try_from(number - self.first).ok()?;
        self.pieces.get_mut(at)
    }

    /// Takes out the first piece, without its bytes.
    fn pop(&mut self) -> Option<Piece> {
        let piece = *self.pieces.front()?;
        if self.is_indexed() && !matches!(piece.kind, Kind::Untied | Kind::Withdrawn) {
            let number = self.first;
            let hash = self.hasher.hash_one(piece.value);
            self.last.remove_hashed(hash, &|known| known == number);
        }
        self.pieces.pop_front();
        self.first += 1;
        self.indexed = self.indexed.max(self.first);
        Some(piece)
    }

    /// There are no pieces any more.
    fn forget(&mut self) {
        self.indexed = self.first;
        if !self.last.is_empty() {
            self.last = Index::default();
        }
        let retained = self.retained / RETAINED_PER_PIECE;
        if self.pieces.capacity() > retained {
            self.pieces.shrink_to(retained);
        }
    }

    // ------------------------------------------------------------------ gaps

    /// The first frame that is not on its way.
    fn first_frame(&self) -> Option<Frame> {
        let mut frame = Frame::default();
        for piece in &self.pieces {
            frame.pieces += 1;
            frame.length += piece.length;
            if piece.kind == Kind::Withdrawn {
                frame.withdrawn += piece.length;
            } else if piece.continues {
                frame.has_more = true;
            }
            if !piece.continues {
                return Some(frame);
            }
        }
        None
    }

    /// Takes what is withdrawn out of the first frame, which nothing that leaves is before.
    fn close_gaps(&mut self, frame: Frame) {
        let mut to = self.head + frame.length;
        if frame.has_more {
            let mut from = to;
            for piece in self.pieces.iter().take(frame.pieces).rev() {
                from -= piece.length;
                if piece.kind != Kind::Withdrawn {
                    to -= piece.length;
                    self.bytes.copy_within(from..from + piece.length, to);
                }
            }
            self.bytes[to] = b'[';
        }
        for _ in 0..frame.pieces {
            self.pop();
        }
        self.withdrawn -= frame.withdrawn;
        let gap = to - self.head;
        if gap < frame.length {
            // What is left is one piece, in the place of the last.
            let (value, length) = (0, frame.length - gap);
            let (previous, kind, continues) = (0, Kind::Untied, false);
            self.first -= 1;
            self.pieces.push_front(Piece { value, length, previous, kind, continues });
        }
        self.drop_front(gap);
    }

    fn drop_front(&mut self, length: usize) {
        self.head += length;
        if self.head == self.bytes.len() {
            self.head = 0;
            self.bytes.clear();
            if self.bytes.capacity() > self.retained {
                self.bytes.shrink_to(self.retained);
            }
        } else if self.head >= MOVED_MIN && self.head >= self.bytes.len() / 4 {
            // Moves at most three times as much as was sent since the last move: constant work per
            // byte. Were it left to later, a queue that is never empty would grow far beyond what
            // waits in it.
            self.bytes.drain(..self.head);
            self.head = 0;
        }
    }

    /// Moves what waits over what is withdrawn, once that and what has left is a quarter: constant
    /// work per byte, as above.
    fn compact(&mut self) {
        let gone = self.head + self.withdrawn;
        if gone < MOVED_MIN || gone < self.bytes.len() / 4 {
            return;
        }
        let mut from = self.head + self.leaving;
        self.bytes.copy_within(self.head..from, 0);
        let mut to = self.leaving;
        let (mut continued, mut begun) = (false, false);
        for _ in 0..self.pieces.len() {
            let Some(mut piece) = self.pieces.pop_front() else { break };
            let closes = continued && !piece.continues;
            // A frame of which nothing is left needs no end.
            let kept = piece.kind != Kind::Withdrawn && (!closes || begun);
            if kept {
                self.bytes.copy_within(from..from + piece.length, to);
                if piece.continues && !begun {
                    self.bytes[to] = b'[';
                }
                to += piece.length;
                piece.previous = 0;
                self.pieces.push_back(piece);
            }
            from += piece.length;
            continued = piece.continues;
            begun = continued && (begun || kept);
        }
        self.bytes.truncate(to);
        (self.head, self.withdrawn) = (0, 0);
        self.last = Index::default();
        self.indexed = self.first;
        if self.bytes.is_empty() && self.bytes.capacity() > self.retained {
            self.bytes.shrink_to(self.retained);
        }
        if self.pieces.is_empty() {
            self.forget();
        }
    }
}

/// What there is to know of a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    pieces: usize,
    length: usize,
    withdrawn: usize,
    /// A piece before the last is not withdrawn.
    has_more: bool,
}
