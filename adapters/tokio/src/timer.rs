use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_sansio::Instant;
use mcp_sansio_async::Timer;
use tokio::time::{self, Sleep};

use crate::clock;

/// The clock [`now`](crate::now) with one alarm of the current tokio runtime, whose time must be
/// enabled.
#[derive(Default)]
pub struct TokioTimer {
    /// The alarm and its time.
    armed: Option<(Pin<Box<Sleep>>, Instant)>,
}

impl TokioTimer {
    /// Creates a timer without a deadline.
    #[must_use]
    pub const fn new() -> Self {
        Self { armed: None }
    }
}

impl Timer for TokioTimer {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let moment = clock::to_std(deadline);
        let (sleep, alarm) =
            self.armed.get_or_insert_with(|| (Box::pin(time::sleep_until(moment)), deadline));
        if *alarm > deadline {
            sleep.as_mut().reset(moment);
            *alarm = deadline;
        }
        // An alarm that is too early is kept until it goes off: most messages move the deadline to
        // a later time, and re-arming costs more than one extra wake-up.
        while sleep.as_mut().poll(cx).is_ready() {
            if *alarm >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(moment);
            *alarm = deadline;
        }
        Poll::Pending
    }

    fn may_be_due(&self) -> bool {
        self.armed.as_ref().is_none_or(|(sleep, _)| sleep.is_elapsed())
    }
}

impl fmt::Debug for TokioTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alarm = self.armed.as_ref().map(|(_, alarm)| alarm);
        f.debug_struct("TokioTimer").field("alarm", &alarm).finish()
    }
}

#[cfg(test)]
mod tests {
    use core::future::poll_fn;

    use super::*;

    /// Returns the milliseconds until a deadline of `millis` from now passes, after polling once
    /// for each deadline in `before`.
    async fn wait(before: &[u64], millis: u64) -> u64 {
        let mut timer = TokioTimer::new();
        let start = timer.now();
        let at = |millis| start + std::time::Duration::from_millis(millis);
        let mut before = before.iter();
        poll_fn(|cx| {
            for &millis in before.by_ref() {
                assert!(timer.poll_until(cx, at(millis)).is_pending());
            }
            timer.poll_until(cx, at(millis))
        })
        .await;
        u64::try_from(timer.now().saturating_since(start).as_millis()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_deadline_counts_wherever_it_moved() {
        for before in [&[][..], &[50], &[500], &[50, 500, 70]] {
            let waited = wait(before, 100).await;
            assert!((100..=102).contains(&waited), "{waited} ms after {before:?}");
        }
    }
}
