use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use super::stream::Stream;

/// The streams of a connection, by number.
///
/// The first one, which every connection has, is stored inline; the others are allocated on demand.
/// The first one is found by the number 0 as well as by its own, which differ if nodes share the
/// session.
#[derive(Debug, Default)]
pub(super) struct Streams {
    first: Option<Stream>,
    others: BTreeMap<u32, Box<Stream>>,
}

impl Streams {
    pub(super) fn new(first: Stream) -> Self {
        Self { first: Some(first), others: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, stream: Stream) {
        self.others.insert(stream.number, Box::new(stream));
    }

    pub(super) fn get(&self, number: u32) -> Option<&Stream> {
        if self.is_first(number) {
            self.first.as_ref()
        } else {
            self.others.get(&number).map(|it| &**it)
        }
    }

    fn is_first(&self, number: u32) -> bool {
        number == 0 || self.first.as_ref().is_some_and(|first| first.number == number)
    }

    /// Returns the number of the first stream.
    pub(super) fn first_number(&self) -> u32 {
        self.first.as_ref().map_or(0, |first| first.number)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Stream> {
        if self.is_first(number) {
            self.first.as_mut()
        } else if self.others.last_key_value().is_some_and(|(last, _)| *last == number) {
            // The last one is used the most, and there may be many older ones.
            self.others.last_entry().map(|last| &mut **last.into_mut())
        } else {
            self.others.get_mut(&number).map(|it| &mut **it)
        }
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Stream> {
        if self.is_first(number) {
            self.first.take()
        } else {
            self.others.remove(&number).map(|it| *it)
        }
    }

    /// Returns the streams in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.first.iter().chain(self.others.values().map(|it| &**it))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }
}
