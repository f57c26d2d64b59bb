use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_sansio::{Instant, Job};

use crate::Timer;

/// An asynchronous runtime: a clock with timers, and tasks.
///
/// This suffices for a server on HTTP. For child processes a runtime also implements
/// [`Process`](crate::child::Process).
pub trait Runtime: Clone + fmt::Debug + Send + Sync + Unpin + 'static {
    /// A timer of this runtime. All its timers share one clock.
    type Timer: Timer + Send + Unpin + 'static;

    /// Returns the runtime that the caller runs in.
    ///
    /// # Panics
    ///
    /// Outside of a runtime, where the implementation needs one.
    fn current() -> Self;

    /// Creates a timer without a deadline.
    fn timer(&self) -> Self::Timer;

    /// Returns the current time on the clock of the timers.
    fn now(&self) -> Instant {
        self.timer().now()
    }

    /// Spawns a detached task. It may be called on a thread outside of the runtime, since a
    /// response may be dropped anywhere.
    ///
    /// A panic of a task must not affect anything else; [`CatchPanic`] is for executors that do not
    /// catch panics.
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F);

    /// Runs a job on a thread that may block, or drops it if no thread can be had. Called within
    /// the runtime.
    ///
    /// Runs it in place by default: blocking handlers then block their connection.
    fn spawn_blocking(job: Job) {
        job();
    }
}

/// A future that completes when the inner one panics. The panic hook has already reported the
/// panic.
#[derive(Debug)]
pub struct CatchPanic<F>(Pin<Box<F>>);

impl<F: Future<Output = ()>> CatchPanic<F> {
    /// Catches the panics of `future`.
    pub fn new(future: F) -> Self {
        Self(Box::pin(future))
    }
}

impl<F: Future<Output = ()>> Future for CatchPanic<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let future = self.0.as_mut();
        catch_unwind(AssertUnwindSafe(|| future.poll(cx))).unwrap_or(Poll::Ready(()))
    }
}

/// A clock set by a test, with timers that go off on every poll. It spawns nothing.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(crate) struct ManualClock(std::sync::Arc<std::sync::Mutex<Instant>>);

#[cfg(test)]
impl ManualClock {
    pub(crate) fn set(&self, now: Instant) {
        *self.0.lock().unwrap() = now;
    }

    pub(crate) fn advance(&self, time: std::time::Duration) {
        self.set(Runtime::now(self) + time);
    }
}

#[cfg(test)]
impl Timer for ManualClock {
    fn now(&self) -> Instant {
        *self.0.lock().unwrap()
    }

    fn poll_until(&mut self, _: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        if Runtime::now(self) < deadline { Poll::Pending } else { Poll::Ready(()) }
    }
}

#[cfg(test)]
impl Runtime for ManualClock {
    type Timer = Self;

    fn current() -> Self {
        Self::default()
    }

    fn timer(&self) -> Self {
        self.clone()
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, _: F) {
        unreachable!("nothing is spawned")
    }
}
