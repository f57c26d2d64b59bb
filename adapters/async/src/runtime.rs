use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_sansio::{Instant, Job, PanicGuard};

/// An asynchronous runtime: a clock with timers, and tasks.
///
/// This suffices for a server on HTTP. For child processes a runtime also implements
/// [`Process`](crate::child::Process).
pub trait Runtime: Clone + fmt::Debug + Send + Sync + Unpin + 'static {
    /// A timer of this runtime. All its timers share one clock.
    type Timer: Timer + Send + Unpin + 'static;

    /// Concurrent connections of an HTTP listener by default. 16,384, which suits cheap tasks.
    const CONNECTIONS_MAX: usize = 16_384;

    /// Concurrent handlers that an HTTP server can have at most, whatever its limits say. For
    /// runtimes whose tasks have a thread each.
    const HANDLERS_MAX: usize = usize::MAX;

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
pub struct CatchPanic<F: ?Sized>(Pin<Box<F>>);

impl<F: Future<Output = ()>> CatchPanic<F> {
    /// Catches the panics of `future`.
    pub fn new(future: F) -> Self {
        Self(Box::pin(future))
    }
}

impl CatchPanic<dyn Future<Output = ()> + Send> {
    /// Catches the panics of `future`, whose type is left out.
    pub fn erased(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }
}

impl<F: Future<Output = ()> + ?Sized> Future for CatchPanic<F> {
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

    pub(crate) fn advance(&self, time: Duration) {
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

// ------------------------------------------------------------------ panics

/// Returns a guard that catches the panics of handlers by unwinding. The drivers of this crate
/// install it in their endpoints; applications that drive an endpoint directly may do the same. It
/// has no effect if the program aborts on panic.
///
/// A panicking function may leave the application's own state inconsistent. It cannot damage the
/// endpoint, which only shares its queue of reports and commands, and that is consistent at each
/// step.
#[must_use]
pub const fn panic_guard() -> PanicGuard {
    PanicGuard::new(|function| catch_unwind(AssertUnwindSafe(function)))
}

// ------------------------------------------------------------------ timer

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

/// An alarm of a runtime, which goes off once.
pub trait Alarm: Unpin {
    /// Returns the current time on the clock of the alarms.
    fn now() -> Instant;

    /// Creates an alarm that goes off at `at`.
    fn new(at: Instant) -> Self;

    /// Sets another time. The alarm may have gone off.
    fn reset(&mut self, at: Instant);

    /// Waits until the alarm goes off. It is not called again before [`reset`](Self::reset).
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Returns whether the alarm may have gone off.
    fn may_be_due(&self) -> bool {
        true
    }
}

/// The timer of a runtime with alarms. It sets one at the first deadline.
pub struct AlarmTimer<A> {
    armed: Option<Armed<A>>,
}

struct Armed<A> {
    alarm: A,
    at: Instant,
    has_gone_off: bool,
}

impl<A> AlarmTimer<A> {
    /// Creates a timer without a deadline.
    #[must_use]
    pub const fn new() -> Self {
        Self { armed: None }
    }
}

impl<A> Default for AlarmTimer<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Alarm> Timer for AlarmTimer<A> {
    fn now(&self) -> Instant {
        A::now()
    }

    fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let armed = self.armed.get_or_insert_with(|| Armed {
            alarm: A::new(deadline),
            at: deadline,
            has_gone_off: false,
        });
        if armed.has_gone_off || armed.at > deadline {
            armed.reset(deadline);
        }
        // An alarm that is too early is kept until it goes off: most messages move the deadline to
        // a later time, and re-arming costs more than one extra wake-up.
        while armed.alarm.poll(cx).is_ready() {
            if armed.at >= deadline {
                armed.has_gone_off = true;
                return Poll::Ready(());
            }
            armed.reset(deadline);
        }
        Poll::Pending
    }

    fn may_be_due(&self) -> bool {
        self.armed.as_ref().is_none_or(|armed| armed.has_gone_off || armed.alarm.may_be_due())
    }
}

impl<A: Alarm> Armed<A> {
    fn reset(&mut self, at: Instant) {
        self.alarm.reset(at);
        (self.at, self.has_gone_off) = (at, false);
    }
}

impl<A> fmt::Debug for AlarmTimer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.armed.as_ref().map(|armed| armed.at);
        f.debug_struct("AlarmTimer").field("at", &at).finish()
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
