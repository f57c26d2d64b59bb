use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_sansio::Instant;

use super::runtime::AnyRuntime;
use crate::Timer;

/// A timer that goes off once.
pub(super) struct Alarm {
    timer: Box<dyn Timer + Send>,
    deadline: Instant,
}

impl Alarm {
    pub(super) fn after(time: Duration, runtime: &dyn AnyRuntime) -> Self {
        Self { timer: runtime.timer(), deadline: runtime.now() + time }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.timer.poll_until(cx, self.deadline)
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// What `future` comes to, `None` if it takes longer than `time`.
pub(super) async fn within<F: Future>(
    time: Duration,
    runtime: &dyn AnyRuntime,
    mut future: Pin<&mut F>,
) -> Option<F::Output> {
    // Most have nothing to wait for, and need no alarm.
    let mut alarm = None;
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        let alarm = alarm.get_or_insert_with(|| Alarm::after(time, runtime));
        alarm.poll(cx).map(|()| None)
    })
    .await
}
