use std::time::Instant;

use crate::allocator;

/// Counts what round trips take.
#[derive(Debug)]
pub struct Meter {
    start: Instant,
}

impl Meter {
    /// Starts to count. One meter runs at a time.
    #[must_use]
    pub fn start() -> Self {
        allocator::start();
        Self { start: Instant::now() }
    }

    /// Prints what was counted, for the program that compares: allocations, then nanoseconds.
    pub fn report(self) {
        let nanoseconds = self.start.elapsed().as_nanos();
        println!("{} {nanoseconds}", allocator::stop());
    }
}
