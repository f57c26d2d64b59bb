use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
#[cfg(feature = "http-server")]
use std::time::SystemTime;

use mcp_sansio::Instant;
use mcp_sansio_async::Timer;
use mcp_sansio_async::clock::now;

use crate::executor::reactor;

/// The system's monotonic clock, with one alarm for use in [`block_on`](crate::block_on).
///
/// All clocks of a process share one origin, the first reading.
///
/// Outside of `block_on`, nothing watches the alarm: the task is then woken immediately and
/// repeatedly until the deadline has passed.
#[derive(Debug)]
pub struct Clock {
    timer: u64,
}

impl Clock {
    /// Creates a clock without a deadline.
    #[must_use]
    pub fn new() -> Self {
        static NEXT_TIMER: AtomicU64 = AtomicU64::new(0);
        Self { timer: NEXT_TIMER.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Timer for Clock {
    fn now(&self) -> Instant {
        now()
    }

    fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        if deadline <= now() {
            reactor::remove_timer(self.timer);
            return Poll::Ready(());
        }
        if !reactor::set_timer(self.timer, deadline, cx.waker()) {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// Waits in [`block_on`](crate::block_on) without blocking the thread: for the delays of
/// [`Servers`](crate::Servers).
pub async fn sleep(time: Duration) {
    let mut clock = Clock::new();
    let deadline = clock.now() + time;
    poll_fn(|cx| clock.poll_until(cx, deadline)).await;
}

impl Drop for Clock {
    fn drop(&mut self) {
        reactor::remove_timer(self.timer);
    }
}

#[cfg(feature = "http-server")]
#[allow(clippy::disallowed_methods, reason = "an adapter provides the time")]
pub(crate) fn system_time() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_goes_off_at_its_deadline_and_not_before() {
        let mut clock = Clock::new();
        let deadline = clock.now() + Duration::from_millis(5);
        crate::block_on(poll_fn(|cx| clock.poll_until(cx, deadline))).unwrap();
        assert!(clock.now() >= deadline);
    }

    #[test]
    fn a_later_deadline_replaces_the_earlier_one() {
        let mut clock = Clock::new();
        let start = clock.now();
        let (early, late) = (start + Duration::from_millis(1), start + Duration::from_millis(8));
        let mut polls = 0;
        crate::block_on(poll_fn(|cx| {
            polls += 1;
            // On a busy machine, either deadline may have passed before the first poll.
            let _ = clock.poll_until(cx, early);
            clock.poll_until(cx, late)
        }))
        .unwrap();
        assert!(clock.now() >= late);
        assert!(polls <= 2, "the early deadline woke the task as well: {polls} polls");
    }

    #[test]
    fn clocks_share_their_origin() {
        let (one, other) = (Clock::new(), Clock::new());
        let readings = [one.now(), other.now(), now(), one.now()];
        assert!(readings.is_sorted());
    }

    #[test]
    fn a_sleep_ends_after_its_time() {
        let start = now();
        crate::block_on(sleep(Duration::from_millis(5))).unwrap();
        assert!(now() >= start + Duration::from_millis(5));
    }
}
