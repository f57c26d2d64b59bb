use std::fmt;
use std::time::Duration;

use mcp_sansio::Instant;

use crate::coverage::{Coverage, Happening};
use crate::transcript::Transcript;
use seeded_random::Random;

/// The state shared by all parts of a schedule: the clock, the random numbers, and the transcript.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) now: Instant,
    pub(crate) random: Random,
    pub(crate) tally: Coverage,
    pub(crate) transcript: Transcript,
    /// Whether faults have stopped, so that pending work ends.
    pub(crate) calm: bool,
    /// Whether the clock is stopped for a while.
    pub(crate) still: bool,
    serials: u64,
}

impl Scene {
    pub(crate) fn new(seed: u64, prints: bool) -> Self {
        Self {
            now: Instant::from_millis(1),
            random: Random::new(seed),
            tally: Coverage::new(),
            transcript: Transcript::new(prints),
            calm: false,
            still: false,
            serials: 0,
        }
    }

    pub(crate) fn note(&mut self, what: fmt::Arguments<'_>) {
        self.transcript.note(self.now, what);
    }

    pub(crate) const fn count(&mut self, happening: Happening) {
        self.tally.count(happening);
    }

    /// Returns a unique number, greater than all earlier ones.
    pub(crate) const fn serial(&mut self) -> u64 {
        self.serials += 1;
        self.serials
    }

    /// Returns true once in `often` calls on average, until the schedule is calm.
    pub(crate) fn strikes(&mut self, often: u64) -> bool {
        !self.calm && self.random.once_in(often)
    }

    /// Returns the latency of a delivery: mostly none or little, sometimes long.
    pub(crate) fn latency(&mut self) -> Duration {
        if self.still {
            return Duration::ZERO;
        }
        match self.random.below(8) {
            0..=3 => Duration::ZERO,
            4..=6 => self.random.millis(20),
            _ => self.random.millis(1500),
        }
    }

    /// Advances the clock to the next move, sometimes further, and sometimes stops it for a while.
    pub(crate) fn pass_to(&mut self, next: Instant) {
        // A move at the end of time never happens.
        const LONGEST: Duration = Duration::from_secs(24 * 3600);
        let never = next.saturating_since(self.now) > LONGEST;
        self.now = if never { self.now + Duration::from_secs(10) } else { next };
        if self.strikes(300) {
            self.count(Happening::Jump);
            self.now = self.now + Duration::from_secs(self.random.below(6 * 3600));
            self.note(format_args!("the clock jumps"));
        }
        if self.strikes(60) {
            self.still = !self.still;
            self.count(Happening::StandStill);
        }
    }

    /// Returns the length of a stall.
    pub(crate) fn stall(&mut self) -> Duration {
        match self.random.below(3) {
            0 => self.random.millis(3_000),
            1 => self.random.millis(30_000),
            _ => self.random.millis(120_000),
        }
    }
}
