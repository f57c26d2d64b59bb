//! Event sources of this thread's `block_on`, other than wakers: timers and, on Unix, descriptors.

use std::cell::RefCell;
use std::io;
#[cfg(unix)]
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use mcp_sansio::Instant;

use super::notifier::Notifier;
#[cfg(unix)]
use crate::descriptor::Descriptor;
use crate::now;

thread_local! {
    static CURRENT: RefCell<Option<Reactor>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Reactor {
    timers: Vec<TimerEntry>,
    #[cfg(unix)]
    interests: Vec<Interest>,
    /// Ready flags of the interests after the last wait; reuses its allocation.
    #[cfg(unix)]
    ready: Vec<bool>,
    /// Wakers to call; reuses its allocation.
    due: Vec<Waker>,
}

struct TimerEntry {
    id: u64,
    at: Instant,
    waker: Waker,
}

#[cfg(unix)]
struct Interest {
    descriptor: Arc<Descriptor>,
    direction: Direction,
    waker: Waker,
}

/// The operation that waits for a descriptor.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// How long a wait lasts without events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitMode {
    /// Returns immediately.
    NoWait,
    /// Until the first timer.
    UntilWoken,
}

/// The longest single wait. One hour: some systems refuse more than 24 days, and waking once an
/// hour costs nothing.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// Keeps the reactor of this thread installed.
pub(super) struct Entered {
    outer: Option<Reactor>,
}

/// Installs a reactor for this thread until the returned guard is dropped.
pub(super) fn enter() -> Entered {
    Entered { outer: CURRENT.replace(Some(Reactor::default())) }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let outer = self.outer.take();
        drop(CURRENT.replace(outer));
    }
}

/// Calls `action` with this thread's reactor, if it has one. Values whose drop may run foreign
/// code, especially wakers, must be returned from `action`.
fn with<T>(action: impl FnOnce(&mut Reactor) -> T) -> Option<T> {
    CURRENT.try_with(|current| current.borrow_mut().as_mut().map(action)).ok().flatten()
}

/// Sets the timer `id`, replacing its earlier deadline. Returns whether a reactor watches it.
pub(crate) fn set_timer(id: u64, at: Instant, waker: &Waker) -> bool {
    let replaced = with(|reactor| match reactor.timers.iter_mut().find(|timer| timer.id == id) {
        Some(timer) => {
            timer.at = at;
            renew(&mut timer.waker, waker)
        }
        None => {
            reactor.timers.push(TimerEntry { id, at, waker: waker.clone() });
            None
        }
    });
    replaced.is_some()
}

/// Removes the timer `id`.
pub(crate) fn remove_timer(id: u64) {
    let removed = with(|reactor| {
        let index = reactor.timers.iter().position(|timer| timer.id == id)?;
        Some(reactor.timers.swap_remove(index))
    });
    drop(removed);
}

/// Watches `descriptor` until it is ready. Returns whether a reactor watches it.
#[cfg(unix)]
pub(crate) fn watch(descriptor: &Arc<Descriptor>, direction: Direction, waker: &Waker) -> bool {
    let replaced = with(|reactor| match reactor.interest(descriptor, direction) {
        Some(interest) => renew(&mut interest.waker, waker),
        None => {
            let descriptor = Arc::clone(descriptor);
            reactor.interests.push(Interest { descriptor, direction, waker: waker.clone() });
            None
        }
    });
    replaced.is_some()
}

/// Returns whether `descriptor` is still being watched; if so, replaces its waker with `waker`.
#[cfg(unix)]
pub(crate) fn is_watched(
    descriptor: &Arc<Descriptor>,
    direction: Direction,
    waker: &Waker,
) -> bool {
    let watched = with(|reactor| {
        let interest = reactor.interest(descriptor, direction)?;
        Some(renew(&mut interest.waker, waker))
    });
    watched.flatten().is_some()
}

/// Stops watching `descriptor`.
#[cfg(unix)]
pub(crate) fn forget(descriptor: &Arc<Descriptor>, direction: Direction) {
    let forgotten = with(|reactor| {
        let same = |interest: &Interest| interest.is(descriptor, direction);
        let index = reactor.interests.iter().position(same)?;
        Some(reactor.interests.swap_remove(index))
    });
    drop(forgotten);
}

/// Replaces `waker` with `new` if they differ, and returns the old one.
fn renew(waker: &mut Waker, new: &Waker) -> Option<Waker> {
    (!waker.will_wake(new)).then(|| std::mem::replace(waker, new.clone()))
}

/// Waits for a descriptor, a timer or the notifier, whichever comes first.
pub(super) fn wait(notifier: &Notifier, mode: WaitMode) -> io::Result<()> {
    with(|reactor| reactor.wait(notifier, mode)).unwrap_or(Ok(()))
}

/// Wakes the tasks whose events occurred in the last wait.
pub(super) fn wake_due() {
    let Some(mut due) = with(|reactor| std::mem::take(&mut reactor.due)) else { return };
    if due.is_empty() {
        return;
    }
    due.drain(..).for_each(Waker::wake);
    with(|reactor| reactor.due = due);
}

impl Reactor {
    #[cfg(unix)]
    fn interest(
        &mut self,
        descriptor: &Arc<Descriptor>,
        direction: Direction,
    ) -> Option<&mut Interest> {
        self.interests.iter_mut().find(|interest| interest.is(descriptor, direction))
    }

    /// Returns the time to wait, `None` for no limit.
    fn timeout(&self, mode: WaitMode) -> Option<Duration> {
        if mode == WaitMode::NoWait {
            return Some(Duration::ZERO);
        }
        let first = self.timers.iter().map(|timer| timer.at).min()?;
        Some(first.saturating_since(now()).min(WAIT_MAX))
    }

    #[cfg(unix)]
    fn wait(&mut self, notifier: &Notifier, mode: WaitMode) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let timeout = self.timeout(mode).and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut polled = Vec::with_capacity(self.interests.len() + 1);
        polled.extend(self.interests.iter().map(|Interest { descriptor, direction, .. }| {
            let flags = if *direction == Direction::Read { PollFlags::IN } else { PollFlags::OUT };
            PollFd::new(&**descriptor, flags)
        }));
        polled.push(PollFd::new(notifier.descriptor(), PollFlags::IN));
        match poll(&mut polled, timeout.as_ref()) {
            // Interrupted by a signal: the caller finds no wake-up, and waits again.
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => {
                if polled.pop().is_some_and(|own| !own.revents().is_empty()) {
                    notifier.drain();
                }
                // The next read or write reports an error or hang-up.
                self.ready.clear();
                self.ready.extend(polled.into_iter().map(|polled| !polled.revents().is_empty()));
                let mut ready = self.ready.iter();
                let fired = self.interests.extract_if(.., |_| ready.next() == Some(&true));
                self.due.extend(fired.map(|interest| interest.waker));
            }
            Err(error) => return Err(error.into()),
        }
        self.fire_timers();
        Ok(())
    }

    #[cfg(not(unix))]
    fn wait(&mut self, _: &Notifier, mode: WaitMode) -> io::Result<()> {
        match self.timeout(mode) {
            Some(timeout) if timeout.is_zero() => {}
            Some(timeout) => std::thread::park_timeout(timeout),
            None => std::thread::park(),
        }
        self.fire_timers();
        Ok(())
    }

    /// Removes the timers that are due, and collects their wakers.
    fn fire_timers(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now = now();
        let rung = self.timers.extract_if(.., |timer| timer.at <= now);
        self.due.extend(rung.map(|timer| timer.waker));
    }
}

#[cfg(unix)]
impl Interest {
    fn is(&self, descriptor: &Arc<Descriptor>, direction: Direction) -> bool {
        self.direction == direction && Arc::ptr_eq(&self.descriptor, descriptor)
    }
}
