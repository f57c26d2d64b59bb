use std::fmt;
use std::time::Duration;

use mcp_sansio::Instant;

use crate::coverage::{Coverage, Happening};
use crate::transcript::Transcript;
use seeded_random::Random;

/// What all parts of a schedule share: the clock, the random numbers, and the record of what happened.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) now: Instant,
    pub(crate) random: Random,
    pub(crate) tally: Coverage,
    pub(crate) transcript: Transcript,
    /// No new trouble from here on: what is under way comes to its end.
    pub(crate) calm: bool,
    /// Time does not pass by itself for a while.
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

    /// A number that nothing else in this schedule has, greater than all before.
    pub(crate) const fn serial(&mut self) -> u64 {
        self.serials += 1;
        self.serials
    }

    /// Whether trouble of some kind strikes, which it does once in `often` times until it is calm.
    pub(crate) fn strikes(&mut self, often: u64) -> bool {
        !self.calm && self.random.once_in(often)
    }

    /// How long something takes on the way: mostly nothing or little, sometimes long.
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

    /// Time passes up to what is next: sometimes it goes on passing, or stops for a while.
    pub(crate) fn pass_to(&mut self, next: Instant) {
        // What is to happen at the end of all time never does.
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

    /// How long something stands still.
    pub(crate) fn stall(&mut self) -> Duration {
        match self.random.below(3) {
            0 => self.random.millis(3_000),
            1 => self.random.millis(30_000),
            _ => self.random.millis(120_000),
        }
    }
}
