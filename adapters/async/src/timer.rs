use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_sansio::Instant;

use crate::Runtime;

/// A monotonic clock with one alarm.
pub trait Timer {
    /// Returns the current time.
    fn now(&self) -> Instant;

    /// Waits until [`now`](Self::now) has reached `deadline`.
    ///
    /// Each call replaces the previous deadline. Deadlines change often, usually to later ones: an
    /// implementation that re-arms its alarm only for an earlier deadline, or after it has gone off
    /// too soon, costs nothing per message. Waking the task too early is harmless.
    fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()>;

    /// Returns whether the alarm may have gone off since [`poll_until`](Self::poll_until) last
    /// returned [`Poll::Pending`]. A timer that can determine this cheaply saves a call for each
    /// message.
    fn may_be_due(&self) -> bool {
        true
    }
}

impl<T: Timer + ?Sized> Timer for &mut T {
    fn now(&self) -> Instant {
        (**self).now()
    }

    fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        (**self).poll_until(cx, deadline)
    }
}

/// Returns the output of `future`, or `None` if it takes longer than `limit`.
pub async fn timeout<F: Future>(
    runtime: &impl Runtime,
    limit: Duration,
    future: F,
) -> Option<F::Output> {
    let mut timer = runtime.timer();
    let deadline = timer.now() + limit;
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => timer.poll_until(cx, deadline).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::Waker;

    use super::*;
    use crate::runtime::ManualClock;

    #[test]
    fn a_timed_out_future_has_no_output() {
        let (clock, limit) = (ManualClock::default(), Duration::from_millis(1));
        let cx = &mut Context::from_waker(Waker::noop());
        let mut never = pin!(timeout(&clock, limit, pending::<()>()));
        assert!(never.as_mut().poll(cx).is_pending());
        clock.advance(limit);
        assert_eq!(never.poll(cx), Poll::Ready(None));
        assert_eq!(pin!(timeout(&clock, limit, ready(7))).poll(cx), Poll::Ready(Some(7)));
    }
}
