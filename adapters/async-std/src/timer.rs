use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_sansio::Instant;
use mcp_sansio_async::{Timer, clock};

/// The clock [`now`](crate::now) with one alarm of `async-io`, which works on any executor.
#[derive(Default)]
pub struct AsyncTimer {
    /// The alarm and its time.
    armed: Option<(async_io::Timer, Instant)>,
}

impl AsyncTimer {
    /// Creates a timer without a deadline.
    #[must_use]
    pub const fn new() -> Self {
        Self { armed: None }
    }
}

impl Timer for AsyncTimer {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let moment = clock::to_std(deadline);
        let (alarm, due) =
            self.armed.get_or_insert_with(|| (async_io::Timer::at(moment), deadline));
        if *due > deadline {
            alarm.set_at(moment);
            *due = deadline;
        }
        // An alarm that is too early is kept until it goes off: most messages move the deadline to
        // a later time, and re-arming costs more than one extra wake-up.
        while Pin::new(&mut *alarm).poll(cx).is_ready() {
            if *due >= deadline {
                // An alarm goes off only once.
                self.armed = None;
                return Poll::Ready(());
            }
            alarm.set_at(moment);
            *due = deadline;
        }
        Poll::Pending
    }
}

impl fmt::Debug for AsyncTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let due = self.armed.as_ref().map(|(_, due)| due);
        f.debug_struct("AsyncTimer").field("due", &due).finish()
    }
}

#[cfg(test)]
mod tests {
    use core::future::poll_fn;
    use core::time::Duration;

    use super::*;

    /// Returns the milliseconds until a deadline of `millis` from now passes, after polling once
    /// for each deadline in `before`.
    fn wait(before: &[u64], millis: u64) -> u128 {
        let mut timer = AsyncTimer::new();
        let start = timer.now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut before = before.iter();
        async_io::block_on(poll_fn(|cx| {
            for &millis in before.by_ref() {
                assert!(timer.poll_until(cx, at(millis)).is_pending());
            }
            timer.poll_until(cx, at(millis))
        }));
        timer.now().saturating_since(start).as_millis()
    }

    #[test]
    fn the_last_deadline_counts_wherever_it_moved() {
        for before in [&[][..], &[50], &[5000], &[50, 5000, 70]] {
            let waited = wait(before, 100);
            assert!((100..4000).contains(&waited), "{waited} ms after {before:?}");
        }
    }
}
