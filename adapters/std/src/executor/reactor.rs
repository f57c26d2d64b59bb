//! What the future of this thread's `block_on` waits for, apart from wakers: timers and, on Unix,
//! descriptors.

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
    /// Which of the interests the last wait found ready, in a vector that is kept.
    #[cfg(unix)]
    ready: Vec<bool>,
    /// Who is to be woken, in a vector that is kept.
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

/// What is waited for at a descriptor.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// How long a wait lasts if nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitMode {
    /// Not at all: a look.
    NoWait,
    /// Until the first timer.
    UntilWoken,
}

/// The longest single wait. An hour: some systems refuse more than 24 days, and to wake once an
/// hour costs nothing.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// Keeps this thread's reactor in place.
pub(super) struct Entered {
    outer: Option<Reactor>,
}

/// Puts a reactor in place for this thread, until what is returned is dropped.
pub(super) fn enter() -> Entered {
    Entered { outer: CURRENT.replace(Some(Reactor::default())) }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let outer = self.outer.take();
        drop(CURRENT.replace(outer));
    }
}

/// Calls `action` with this thread's reactor, if it has one. Whatever may run foreign code when it
/// is dropped, wakers above all, has to leave with the result.
fn with<T>(action: impl FnOnce(&mut Reactor) -> T) -> Option<T> {
    CURRENT.try_with(|current| current.borrow_mut().as_mut().map(action)).ok().flatten()
}

/// Sets the timer `id`, instead of where it was. Whether there is a reactor to watch it.
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

/// Takes the timer `id` back.
pub(crate) fn remove_timer(id: u64) {
    let removed = with(|reactor| {
        let index = reactor.timers.iter().position(|timer| timer.id == id)?;
        Some(reactor.timers.swap_remove(index))
    });
    drop(removed);
}

/// Watches `descriptor` until it is ready. Whether there is a reactor to do so.
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

/// Whether `descriptor` is still being watched, from now on for `waker`.
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

/// Puts `new` in the place of `waker` if they differ, and returns the old one.
fn renew(waker: &mut Waker, new: &Waker) -> Option<Waker> {
    (!waker.will_wake(new)).then(|| std::mem::replace(waker, new.clone()))
}

/// Waits for a descriptor, a timer or the notifier, whichever is first.
pub(super) fn wait(notifier: &Notifier, mode: WaitMode) -> io::Result<()> {
    with(|reactor| reactor.wait(notifier, mode)).unwrap_or(Ok(()))
}

/// Wakes those for whom the last wait found something.
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

    /// How long to wait, `None` for as long as it takes.
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
            // A signal: the caller sees that nobody has woken it, and comes again.
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => {
                if polled.pop().is_some_and(|own| !own.revents().is_empty()) {
                    notifier.drain();
                }
                // An error or a hang-up shows in the read or the write that follows.
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

    /// Takes out the timers whose time has come.
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
