use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_io::Timer;
use mcp_sansio::Instant;

use crate::clock;
use crate::timer::{Alarm, AlarmTimer};

/// The clock [`now`](crate::clock::now) with one alarm of `async-io`, which works on any executor.
pub type AsyncTimer = AlarmTimer<Timer>;

impl Alarm for Timer {
    fn now() -> Instant {
        clock::now()
    }

    fn new(at: Instant) -> Self {
        Self::at(clock::to_std(at))
    }

    fn reset(&mut self, at: Instant) {
        self.set_at(clock::to_std(at));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(self).poll(cx).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;
    use crate::Timer as _;

    /// Returns the milliseconds until a deadline of `millis` from now passes, after polling once
    /// for each deadline in `before`.
    fn wait(timer: &mut AsyncTimer, before: &[u64], millis: u64) -> u128 {
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
        let mut timer = AsyncTimer::new();
        for before in [&[][..], &[50], &[5000], &[50, 5000, 70]] {
            let waited = wait(&mut timer, before, 100);
            assert!((100..4000).contains(&waited), "{waited} ms after {before:?}");
        }
    }
}
