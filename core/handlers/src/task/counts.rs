use alloc::sync::Arc;

use mcp_sansio::Instant;
use mcp_sansio_sync::Mutex;

use super::requestors::RateLimit;

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
