use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use super::stream::Stream;

/// The streams of a connection, by number.
///
/// The first one, which every connection has, is stored inline; the others are allocated on demand.
#[derive(Debug, Default)]
pub(super) struct Streams {
    first: Option<Stream>,
    others: BTreeMap<u32, Box<Stream>>,
}

impl Streams {
    pub(super) fn new(first: Stream) -> Self {
        debug_assert_eq!(first.number, 0, "the number of the first stream");
        Self { first: Some(first), others: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, stream: Stream) {
        self.others.insert(stream.number, Box::new(stream));
    }

    pub(super) fn get(&self, number: u32) -> Option<&Stream> {
        if number == 0 { self.first.as_ref() } else { self.others.get(&number).map(|it| &**it) }
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Stream> {
        if number == 0 {
            self.first.as_mut()
        } else if self.others.last_key_value().is_some_and(|(last, _)| *last == number) {
            // The last one is used the most, and there may be many older ones.
            self.others.last_entry().map(|last| &mut **last.into_mut())
        } else {
            self.others.get_mut(&number).map(|it| &mut **it)
        }
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Stream> {
        if number == 0 { self.first.take() } else { self.others.remove(&number).map(|it| *it) }
    }

    /// Returns the streams in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.first.iter().chain(self.others.values().map(|it| &**it))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }
}
