use mcp_sansio::Instant;

/// The most requests about tasks per second from a client without tasks, and the allowance of every
/// client in addition to the polls of its tasks: enough to list and to cancel many tasks at once.
pub(super) const REQUESTS_PER_SECOND: usize = 64;

/// Counts the requests of the last second.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    since: Instant,
    count: usize,
}

impl RateLimit {
    /// Counts a request, and returns whether `allowed` and the allowance of every client suffice.
    pub(super) fn admit(&mut self, allowed: usize, now: Instant) -> bool {
        if now.saturating_since(self.since).as_secs() >= 1 {
            *self = Self { since: now, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= allowed.saturating_add(REQUESTS_PER_SECOND)
    }
}
