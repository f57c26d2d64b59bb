use mcp_sansio::Instant;

/// The wall clock, as last reported by the application.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    seconds: u64,
    told: Instant,
}

impl Clock {
    pub(super) const fn new(seconds: u64, told: Instant) -> Self {
        Self { seconds, told }
    }

    /// Returns the seconds since 1970.
    pub(super) const fn unix_time(&self, now: Instant) -> u64 {
        self.seconds.saturating_add(now.saturating_since(self.told).as_secs())
    }
}
