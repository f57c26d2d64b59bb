use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_sansio::Instant;

use crate::{Runtime, Timer};

/// A type-erased [`Runtime`]: response bodies are public types, and would otherwise need a type
/// parameter in every program.
pub(super) trait AnyRuntime: fmt::Debug + Send + Sync + 'static {
    fn now(&self) -> Instant;

    fn timer(&self) -> Box<dyn Timer + Send>;

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);
}

impl<R: Runtime> AnyRuntime for R {
    fn now(&self) -> Instant {
        Runtime::now(self)
    }

    fn timer(&self) -> Box<dyn Timer + Send> {
        Box::new(Runtime::timer(self))
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        Runtime::spawn(self, task);
    }
}

// ------------------------------------------------------------------ sleep

/// A timer that goes off once.
pub(super) struct Sleep {
    timer: Box<dyn Timer + Send>,
    deadline: Instant,
}

impl Sleep {
    pub(super) fn after(time: Duration, runtime: &dyn AnyRuntime) -> Self {
        Self { timer: runtime.timer(), deadline: runtime.now() + time }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.timer.poll_until(cx, self.deadline)
    }
}

mcp_sansio::partial_debug! { impl Debug for Sleep { deadline, .. } }

/// Returns the output of `future`, or `None` if it takes longer than `time`.
pub(super) async fn with_timeout<F: Future>(
    time: Duration,
    runtime: &dyn AnyRuntime,
    mut future: Pin<&mut F>,
) -> Option<F::Output> {
    // Most futures are ready at once and need no timer.
    let mut sleep = None;
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        let sleep = sleep.get_or_insert_with(|| Sleep::after(time, runtime));
        sleep.poll(cx).map(|()| None)
    })
    .await
}
