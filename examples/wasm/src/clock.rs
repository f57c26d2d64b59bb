//! The time as the host tells it, and the handlers that wait for one.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use mcp_sansio::Instant;
use spin::Mutex;

/// The clock of one connection. Clones are the same clock.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    now: Instant,
    /// Who waits, by the time and in the order of their coming.
    alarms: BTreeMap<(Instant, u64), Waker>,
    sleeps: u64,
}

impl Clock {
    /// The time it is.
    pub(crate) fn now(&self) -> Instant {
        self.0.lock().now
    }

    /// Sets the time, never back, and wakes those whose time has come.
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

    /// When the next alarm rings.
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

/// Ready when its time has come.
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
    /// A handler that was cancelled leaves nothing behind.
    fn drop(&mut self) {
        self.clock.0.lock().alarms.remove(&self.key);
    }
}
