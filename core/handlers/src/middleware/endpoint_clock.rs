use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use mcp_sansio::Instant;
use mcp_sansio_collections::{Deadlines, Key, Slab};
use mcp_sansio_sync::Mutex;

use crate::context::CommandSender;

/// The time of an endpoint, as seen by its middleware, and the middleware that waits for it.
///
/// A trait, so that the binary of a server without middleware contains no code for it: only
/// [`Server::middleware`](crate::Server::middleware) refers to the implementation.
pub(crate) trait EndpointClock: fmt::Debug + Send + Sync {
    /// Returns the latest time that the endpoint was told.
    fn now(&self) -> Instant;

    /// Moves to `now`, the time of an input, and wakes all whose deadline has passed.
    fn advance(&self, now: Instant);

    /// Returns the next deadline, or `other` if that is earlier.
    fn earliest(&self, other: Option<Instant>) -> Option<Instant>;

    /// Ready when `deadline` has passed. Otherwise `entry` is the entry of the waiting task.
    fn poll_sleep(&self, entry: &mut Option<Key>, deadline: Instant, cx: &Context<'_>) -> Poll<()>;

    /// Removes the entry of a task that no longer waits.
    fn forget(&self, entry: Key);

    /// Returns the number of the endpoint among those of its server.
    fn endpoint(&self) -> usize;
}

/// The clock of one endpoint.
pub(super) struct SleepTable {
    /// Wakes the driver for an earlier deadline.
    commands: CommandSender,
    endpoint: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    now: Instant,
    /// Bounded by the running handlers, which wait here.
    sleepers: Slab<Option<Waker>>,
    deadlines: Deadlines<Instant>,
}

impl SleepTable {
    pub(super) fn new(commands: CommandSender, endpoint: usize) -> Self {
        Self { commands, endpoint, state: Mutex::default() }
    }
}

impl EndpointClock for SleepTable {
    fn now(&self) -> Instant {
        self.state.lock(|state| state.now)
    }

    fn advance(&self, now: Instant) {
        let next_due = || {
            self.state.lock(|state| {
                // Handlers on HTTP are polled by several threads, which may read their clocks in
                // another order.
                state.now = state.now.max(now);
                let (_, slot) = state.deadlines.first().filter(|(due, _)| *due <= state.now)?;
                state.deadlines.clear(slot);
                let key = state.sleepers.key_at(slot)?;
                Some(state.sleepers.get_mut(key).and_then(Option::take))
            })
        };
        while let Some(waker) = next_due() {
            // Outside of the lock: a waker may run any code.
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn earliest(&self, other: Option<Instant>) -> Option<Instant> {
        let next = self.state.lock(|state| state.deadlines.first().map(|(due, _)| due));
        next.into_iter().chain(other).min()
    }

    fn poll_sleep(&self, entry: &mut Option<Key>, deadline: Instant, cx: &Context<'_>) -> Poll<()> {
        // Wakers are cloned and dropped outside of the lock, because they run foreign code.
        let mut waker = Some(cx.waker().clone());
        let is_earliest = self.state.lock(|state| {
            if deadline <= state.now {
                return None;
            }
            let known = entry.and_then(|key| Some((key, state.sleepers.get_mut(key)?)));
            let key = match known {
                Some((key, known)) => {
                    core::mem::swap(known, &mut waker);
                    key
                }
                None => state.sleepers.insert(waker.take()),
            };
            *entry = Some(key);
            let before = state.deadlines.first();
            state.deadlines.set(key.slot, deadline);
            Some(before.is_none_or(|(earliest, _)| deadline < earliest))
        });
        drop(waker);
        match is_earliest {
            None => Poll::Ready(()),
            Some(is_earliest) => {
                if is_earliest {
                    self.commands.wake_driver();
                }
                Poll::Pending
            }
        }
    }

    fn forget(&self, entry: Key) {
        let waker = self.state.lock(|state| {
            let removed = state.sleepers.remove(entry)?;
            state.deadlines.clear(entry.slot);
            removed
        });
        drop(waker);
    }

    fn endpoint(&self) -> usize {
        self.endpoint
    }
}

impl fmt::Debug for SleepTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointClock").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// A future that is ready at a point in time: returned by
/// [`ServerRequest::sleep`](super::ServerRequest::sleep). Dropping it cancels the wait.
#[must_use = "futures do nothing unless they are polled"]
pub struct Sleep {
    clock: Arc<dyn EndpointClock>,
    deadline: Instant,
    entry: Option<Key>,
}

impl Sleep {
    pub(super) const fn new(clock: Arc<dyn EndpointClock>, deadline: Instant) -> Self {
        Self { clock, deadline, entry: None }
    }

    /// Returns when the wait ends.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { clock, deadline, entry } = self.get_mut();
        clock.poll_sleep(entry, *deadline, cx)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.clock.forget(entry);
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
