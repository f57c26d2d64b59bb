use std::time::Instant;

use crate::allocator;

/// Measures the allocations and the time of round trips.
#[derive(Debug)]
pub struct Meter {
    start: Instant,
}

impl Meter {
    /// Starts the measurement. Only one meter may run at a time.
    #[must_use]
    pub fn start() -> Self {
        allocator::start();
        Self { start: Instant::now() }
    }

    /// Prints the allocations and the nanoseconds, for the measuring program.
    pub fn report(self) {
        let nanoseconds = self.start.elapsed().as_nanos();
        println!("{} {nanoseconds}", allocator::stop());
    }
}
