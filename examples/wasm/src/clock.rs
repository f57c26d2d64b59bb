//! The time given by the host, and timers for handlers.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;
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
    /// The waiting tasks, the first one to wake last: by deadline, then in the order in which they
    /// started to wait.
    alarms: Vec<(Key, Waker)>,
    sleeps: u64,
}

/// The deadline of a sleep, and its number.
type Key = (Instant, u64);

impl State {
    /// Returns where the alarm of a sleep is, or where it belongs.
    fn find(&self, key: Key) -> Result<usize, usize> {
        self.alarms.binary_search_by_key(&Reverse(key), |(key, _)| Reverse(*key))
    }
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
        while let Some((_, waker)) = state.alarms.pop_if(|((end, _), _)| *end <= now) {
            waker.wake();
        }
    }

    /// Returns the earliest deadline.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.lock().alarms.last().map(|((end, _), _)| *end)
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
    key: Key,
    clock: Clock,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.0.lock();
        if self.key.0 <= state.now {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        match state.find(self.key) {
            Ok(index) => state.alarms[index].1 = waker,
            Err(index) => state.alarms.insert(index, (self.key, waker)),
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    /// Removes the timer of a cancelled handler.
    fn drop(&mut self) {
        let mut state = self.clock.0.lock();
        if let Ok(index) = state.find(self.key) {
            let _dropped = state.alarms.remove(index);
        }
    }
}
