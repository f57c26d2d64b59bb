//! Numbers that look random, for tests: a seed names a run, on every machine and for ever.

#![no_std]
#![forbid(unsafe_code)]

use core::time::Duration;

/// A generator (SplitMix64). Seeds that were written down name their runs by its algorithm: it stays
/// as it is.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Seeds that follow each other make streams that have nothing in common.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed);
        let start = random.next();
        Self(start)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or zero where there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// The same for lengths and places.
    ///
    /// # Panics
    ///
    /// Never: what is below a `usize` is one.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }

    /// Whether it is one of so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of several, if there are any.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let at = self.index(items.len());
        items.get(at)
    }

    /// One of several that are there.
    ///
    /// # Panics
    ///
    /// There are none.
    pub fn one_of<T: Copy, const N: usize>(&mut self, items: [T; N]) -> T {
        items[self.index(N)]
    }

    /// A duration of fewer milliseconds than `bound`.
    pub fn millis(&mut self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_seed_stay_what_they_are() {
        let mut random = Random::new(1);
        let numbers = [(); 4].map(|()| random.below(1000));
        assert_eq!(numbers, [158, 846, 752, 873]);
    }
}
