//! The time given by the host, and timers for handlers.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use mcp_sansio::Instant;
use spin::Mutex;

/// The clock of one connection. Clones share the clock.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    now: Instant,
    /// The waiting tasks by deadline, then in the order in which they started to wait.
    alarms: BTreeMap<(Instant, u64), Waker>,
    sleeps: u64,
}

impl Clock {
    /// Returns the current time.
    pub(crate) fn now(&self) -> Instant {
        self.0.lock().now
    }

    /// Sets the time, unless it is earlier than before, and wakes the tasks whose deadline has
    /// passed.
    pub(crate) fn set(&self, now: Instant) {
        let mut state = self.0.lock();
        let now = state.now.max(now);
        state.now = now;
        while let Some(alarm) = state.alarms.first_entry()
            && alarm.key().0 <= now
        {
            alarm.remove().wake();
        }
    }

    /// Returns the earliest deadline.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.lock().alarms.first_key_value().map(|((end, _), _)| *end)
    }

    /// Waits for `duration`.
    pub(crate) fn sleep(&self, duration: Duration) -> Sleep {
        let mut state = self.0.lock();
        state.sleeps += 1;
        Sleep { key: (state.now + duration, state.sleeps), clock: self.clone() }
    }
}

/// A future that is ready once its deadline has passed.
pub(crate) struct Sleep {
    key: (Instant, u64),
    clock: Clock,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.0.lock();
        if self.key.0 <= state.now {
            return Poll::Ready(());
        }
        state.alarms.insert(self.key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    /// Removes the timer of a cancelled handler.
    fn drop(&mut self) {
        self.clock.0.lock().alarms.remove(&self.key);
    }
}
