use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use mcp_sansio_sync::Mutex;

#[cfg(feature = "client")]
use crate::client::ClientError;
#[cfg(feature = "client")]
use crate::client_middleware::{CallResult, ClientRequest, NextCall};
use crate::threading::Threading;

use super::layers::layer;
use super::limit_error::LimitError;
use super::next::{MiddlewareResult, Next};
use super::server_request::ServerRequest;

/// Middleware that bounds how many requests run at the same time, on all connections of the server.
/// Further ones wait in order; beyond that they are refused with [`LimitError::Busy`].
///
/// A request that waits for the answers to its input requests does not count.
///
/// Around the calls of a client, it bounds those of all connections of the host; one that waits for
/// the user counts.
#[derive(Clone)]
pub struct ConcurrencyLimit {
    slots: Arc<Mutex<Slots>>,
    waiting_max: usize,
}

impl ConcurrencyLimit {
    /// Creates a limit of `running_max` requests, at least one. Clones share it.
    #[must_use]
    pub fn new(running_max: usize) -> Self {
        let slots = Slots { free: running_max.max(1), last: 0, queue: VecDeque::new() };
        Self { slots: Arc::new(Mutex::new(slots)), waiting_max: 1024 }
    }

    /// Sets how many requests may wait. 1,024 by default: each keeps its parameters, so that they
    /// hold some megabytes with usual requests. 0 refuses instead of waiting.
    #[must_use]
    pub const fn waiting_max(mut self, requests: usize) -> Self {
        self.waiting_max = requests;
        self
    }

    async fn around<K: Threading>(&self, _: &ServerRequest, next: Next<K>) -> MiddlewareResult {
        let _permit = self.acquire().ok_or(LimitError::Busy)?.await;
        next.run().await
    }

    #[cfg(feature = "client")]
    pub(crate) async fn around_call(&self, request: ClientRequest, next: NextCall) -> CallResult {
        let permit = self.acquire().ok_or(ClientError::Limited(LimitError::Busy))?;
        let _permit = permit.await;
        next.run(request).await
    }

    /// Takes a slot or a place in the queue; `None` if that is full.
    fn acquire(&self) -> Option<Acquire> {
        let place = self.slots.lock(|slots| {
            // Those that wait go first.
            if slots.free > 0 && slots.queue.is_empty() {
                slots.free -= 1;
                return Some(Place::Acquired);
            }
            if slots.queue.len() >= self.waiting_max {
                return None;
            }
            slots.last += 1;
            slots.queue.push_back((slots.last, None));
            Some(Place::Queued(slots.last))
        })?;
        Some(Acquire { slots: Arc::clone(&self.slots), place })
    }
}

layer!(ConcurrencyLimit);

impl fmt::Debug for ConcurrencyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimit")
            .field("waiting_max", &self.waiting_max)
            .finish_non_exhaustive()
    }
}

struct Slots {
    free: usize,
    /// The last number in the queue.
    last: u64,
    /// Those that wait, in order of their numbers, with their wakers.
    queue: VecDeque<(u64, Option<Waker>)>,
}

impl Slots {
    /// Gives a free slot to the first in the queue, by waking it.
    fn next(&mut self) -> Option<Waker> {
        if self.free == 0 {
            return None;
        }
        self.queue.front_mut().and_then(|(_, waker)| waker.take())
    }
}

#[derive(Clone, Copy)]
enum Place {
    Acquired,
    Queued(u64),
    /// The slot has moved to the permit.
    Left,
}

/// The future of a slot. Dropping it gives up the place in the queue.
struct Acquire {
    slots: Arc<Mutex<Slots>>,
    place: Place,
}

impl Future for Acquire {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Permit> {
        if let Place::Queued(number) = self.place {
            // Wakers are cloned and dropped outside of the lock, because they run foreign code.
            let mut waker = Some(cx.waker().clone());
            let (acquired, next) = self.slots.lock(|slots| {
                if slots.free > 0 && slots.queue.front().is_some_and(|(first, _)| *first == number)
                {
                    slots.free -= 1;
                    slots.queue.pop_front();
                    return (true, slots.next());
                }
                let place = slots.queue.binary_search_by_key(&number, |(known, _)| *known);
                if let Some((_, known)) = place.ok().and_then(|at| slots.queue.get_mut(at)) {
                    core::mem::swap(known, &mut waker);
                }
                (false, None)
            });
            drop(waker);
            if let Some(next) = next {
                next.wake();
            }
            if !acquired {
                return Poll::Pending;
            }
        }
        self.place = Place::Left;
        Poll::Ready(Permit(Arc::clone(&self.slots)))
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let left = match self.place {
            Place::Left => return,
            Place::Acquired => return drop(Permit(Arc::clone(&self.slots))),
            Place::Queued(number) => self.slots.lock(|slots| {
                let place = slots.queue.binary_search_by_key(&number, |(known, _)| *known);
                let removed = place.ok().and_then(|at| slots.queue.remove(at));
                // It may have been woken for a slot, which is now for the next one.
                (removed, slots.next())
            }),
        };
        let (removed, next) = left;
        drop(removed);
        if let Some(next) = next {
            next.wake();
        }
    }
}

/// A slot. Dropping it frees the slot.
struct Permit(Arc<Mutex<Slots>>);

impl Drop for Permit {
    fn drop(&mut self) {
        let next = self.0.lock(|slots| {
            slots.free += 1;
            slots.next()
        });
        if let Some(next) = next {
            next.wake();
        }
    }
}
