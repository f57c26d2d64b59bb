use std::time::Duration;

/// A small generator (SplitMix64), so that a seed alone names a schedule.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Seeds that follow each other make streams that have nothing in common.
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Self(seed);
        let start = dice.next();
        Self(start)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `sides`, or zero where there is none.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.next() % sides.max(1)
    }

    /// The same for lengths and places.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll(bound as u64)).expect("below a length")
    }

    /// True once in `often` times.
    pub(crate) fn once_in(&mut self, often: u64) -> bool {
        self.roll(often) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let at = self.below(items.len());
        items.get(at)
    }

    /// One of several that are there.
    pub(crate) fn one_of<T: Copy, const N: usize>(&mut self, items: [T; N]) -> T {
        items[self.below(N)]
    }

    pub(crate) fn millis(&mut self, below: u64) -> Duration {
        Duration::from_millis(self.roll(below))
    }
}
