use alloc::sync::Arc;

use mcp_sansio::Instant;
use mcp_sansio_sync::Mutex;

/// The sums over the task tables of a server's shards.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskCounts(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    tasks: usize,
    bytes: usize,
    /// The rate of requests from clients without tasks.
    others: RateLimit,
}

impl TaskCounts {
    /// Counts another task if there are fewer than `most`.
    pub(super) fn begin(&self, most: usize) -> bool {
        self.0.lock(|counts| {
            let has_room = counts.tasks < most;
            counts.tasks += usize::from(has_room);
            has_room
        })
    }

    pub(super) fn end(&self) {
        self.0.lock(|counts| counts.tasks -= 1);
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.lock(|counts| counts.bytes)
    }

    /// The bytes of one table have changed.
    pub(super) fn change_bytes(&self, before: usize, after: usize) {
        self.0.lock(|counts| counts.bytes = counts.bytes - before + after);
    }

    /// Whether another request of a client without tasks may be answered.
    pub(super) fn admit_other(&self, now: Instant) -> bool {
        self.0.lock(|counts| counts.others.admit(0, now))
    }
}

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
