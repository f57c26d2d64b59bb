//! The parts of a queue's frames, in order.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::queue::{Kind, Tag};

/// A section of a frame that can be withdrawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The value of its tag; for the end of an array, the number of remaining messages.
    pub(super) value: u64,
    pub(super) length: u32,
    /// Distance to the previous piece with the same tag, or zero for the first.
    pub(super) previous: u32,
    /// Distance to the last piece of the frame.
    pub(super) end: u32,
    pub(super) kind: Kind,
}

impl Piece {
    pub(super) const fn length(&self) -> usize {
        self.length as usize
    }

    pub(super) const fn is_withdrawn(&self) -> bool {
        matches!(self.kind, Kind::Withdrawn)
    }

    /// Returns the tag under which the piece is indexed.
    pub(super) const fn tag(&self) -> Option<Tag> {
        match self.kind {
            Kind::Untied | Kind::Withdrawn => None,
            kind => Some(Tag { kind, value: self.value }),
        }
    }
}

/// A list of pieces. Usually there is only one, which needs no allocation.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pub(super) first: Option<Piece>,
    #[allow(clippy::box_collection, reason = "usually empty, and then one word in size")]
    pub(super) rest: Option<Box<VecDeque<Piece>>>,
}

impl Pieces {
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.rest.as_ref().is_none_or(|rest| rest.is_empty())
    }

    #[inline]
    pub(super) fn push_back(&mut self, piece: Piece) {
        if self.is_empty() {
            self.first = Some(piece);
        } else {
            self.push_more(piece);
        }
    }

    pub(super) fn push_more(&mut self, piece: Piece) {
        self.rest.get_or_insert_default().push_back(piece);
    }

    pub(super) fn pop_front(&mut self) -> Option<Piece> {
        self.first.take().or_else(|| self.rest.as_mut()?.pop_front())
    }

    pub(super) fn drop_front(&mut self, mut count: usize) {
        if count > 0 && self.first.take().is_some() {
            count -= 1;
        }
        if let Some(rest) = &mut self.rest {
            // Not `drain`, which takes half a kilobyte of a device image.
            for _ in 0..count {
                rest.pop_front();
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.first = None;
        if let Some(rest) = &mut self.rest {
            rest.clear();
        }
    }

    /// Releases memory for more than `count` pieces, if the list is empty.
    pub(super) fn shrink_to(&mut self, count: usize) {
        if let Some(rest) = &mut self.rest
            && rest.capacity() > count
        {
            rest.shrink_to(count);
        }
    }

    pub(super) fn get(&self, place: usize) -> Option<&Piece> {
        match (&self.first, place) {
            (Some(first), 0) => Some(first),
            (first, _) => self.rest.as_ref()?.get(place - usize::from(first.is_some())),
        }
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Piece> {
        match (&mut self.first, place) {
            (Some(first), 0) => Some(first),
            (first, _) => self.rest.as_mut()?.get_mut(place - usize::from(first.is_some())),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Piece> {
        self.first.iter().chain(self.rest.iter().flat_map(|rest| rest.iter()))
    }

    pub(super) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Piece> {
        self.first.iter_mut().chain(self.rest.iter_mut().flat_map(|rest| rest.iter_mut()))
    }
}
