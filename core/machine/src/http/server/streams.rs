use alloc::boxed::Box;
use alloc::vec::Vec;

use super::stream::Stream;

/// The streams of a connection, by number.
///
/// The first one, which every connection has, is stored inline; the others are allocated on demand.
/// The first one is found by the number 0 as well as by its own, which differ if nodes share the
/// session.
#[derive(Debug, Default)]
pub(super) struct Streams {
    first: Option<Stream>,
    /// In the order of their numbers, which usually grow.
    #[expect(clippy::vec_box, reason = "streams are large, and moved when others are added")]
    others: Vec<Box<Stream>>,
}

impl Streams {
    pub(super) fn new(first: Stream) -> Self {
        Self { first: Some(first), others: Vec::new() }
    }

    pub(super) fn insert(&mut self, stream: Stream) {
        let stream = Box::new(stream);
        match self.place(stream.number) {
            Ok(known) => self.others[known] = stream,
            Err(place) => self.others.insert(place, stream),
        }
    }

    pub(super) fn get(&self, number: u32) -> Option<&Stream> {
        if self.is_first(number) {
            self.first.as_ref()
        } else {
            self.place(number).ok().map(|place| &*self.others[place])
        }
    }

    fn is_first(&self, number: u32) -> bool {
        number == 0 || self.first.as_ref().is_some_and(|first| first.number == number)
    }

    /// Returns the index of another stream, or the index at which to insert it.
    fn place(&self, number: u32) -> Result<usize, usize> {
        // The last one is used the most, and there may be many older ones.
        match self.others.last() {
            Some(last) if last.number == number => Ok(self.others.len() - 1),
            Some(last) if last.number > number => {
                self.others.binary_search_by_key(&number, |stream| stream.number)
            }
            _ => Err(self.others.len()),
        }
    }

    /// Returns the number of the first stream.
    pub(super) fn first_number(&self) -> u32 {
        self.first.as_ref().map_or(0, |first| first.number)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Stream> {
        if self.is_first(number) {
            self.first.as_mut()
        } else {
            self.place(number).ok().map(|place| &mut *self.others[place])
        }
    }

    pub(super) fn remove(&mut self, number: u32) {
        if self.is_first(number) {
            self.first = None;
        } else if let Ok(place) = self.place(number) {
            self.others.remove(place);
        }
    }

    /// Returns the streams in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.first.iter().chain(self.others.iter().map(|it| &**it))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }
}
