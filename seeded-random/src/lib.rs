//! Deterministic random numbers for tests: a seed identifies a run, on every machine and
//! permanently.

#![forbid(unsafe_code)]

use std::env;
use std::time::Duration;

/// Returns the number of cases that a random test tries: `few` in an ordinary run, which should be
/// short, and that many times `MCP_TEST_SCALE` if this variable of the environment is set.
///
/// # Panics
///
/// The variable is not a number.
#[must_use]
pub fn scaled(few: u32) -> u32 {
    let Ok(scale) = env::var("MCP_TEST_SCALE") else { return few };
    let scale: u32 = scale.parse().unwrap_or_else(|error| panic!("MCP_TEST_SCALE: {error}"));
    few.saturating_mul(scale)
}

/// A generator (SplitMix64). The algorithm must not change, since recorded seeds depend on it.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator. Consecutive seeds yield independent streams.
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

    /// Returns a number below `bound`, or zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Returns an index below `length`, or zero if `length` is zero.
    ///
    /// # Panics
    ///
    /// Never: a number below a `usize` fits one.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }

    /// Returns true with a probability of one in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns one of the items, or `None` if `items` is empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let at = self.index(items.len());
        items.get(at)
    }

    /// Returns one of the items.
    ///
    /// # Panics
    ///
    /// If there are no items.
    pub fn one_of<T: Copy, const N: usize>(&mut self, items: [T; N]) -> T {
        items[self.index(N)]
    }

    /// Returns a duration below `bound` milliseconds.
    pub fn millis(&mut self, bound: u64) -> Duration {
        Duration::from_millis(self.below(bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_seed_do_not_change() {
        let mut random = Random::new(1);
        let numbers = [(); 4].map(|()| random.below(1000));
        assert_eq!(numbers, [158, 846, 752, 873]);
    }
}
