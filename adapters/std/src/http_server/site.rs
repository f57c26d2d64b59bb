use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_sansio::Instant;
use mcp_sansio::http::ExchangeId;
use mcp_sansio_handlers::{HttpServer, Work};

use super::body::Held;
use super::running;
use crate::threads::Threads;

/// Handlers that wait at once, each on a thread. 1,024: as many threads as systems give a process
/// without asking. One more is answered with an internal error.
const HANDLERS_MAX: usize = 1024;

/// A server on HTTP behind the lock that its connections share. It is held for the machine's own
/// work, never while a handler, a client or a waker is at work.
#[derive(Debug)]
pub(super) struct Site {
    locked: Mutex<Locked>,
    /// The bodies of requests that are held.
    pub(super) held: Held,
    /// Where handlers wait.
    pub(super) handlers: Threads,
}

#[derive(Debug)]
pub(super) struct Locked {
    pub(super) server: HttpServer,
    /// Who serves which exchange, by its slot.
    seats: Vec<Option<Seat>>,
    /// The thread that keeps the time, and when it wakes by itself.
    pub(super) keeper: Option<Waker>,
    pub(super) wakes_at: Option<Instant>,
    /// Who waits for the end of all responses.
    drained: Vec<Waker>,
}

/// Who serves an exchange, to be woken when there is something to send.
#[derive(Debug)]
struct Seat {
    /// A slot has one exchange after the other, and whoever served the last one may still be about
    /// to leave.
    exchange: ExchangeId,
    waker: Option<Waker>,
}

/// What is left to do once the lock is free: wakers and handlers are code of others.
#[derive(Debug, Default)]
struct Left {
    wakers: Vec<Waker>,
    works: Vec<Work<'static>>,
}

impl Left {
    fn deal(self, site: &Arc<Site>) {
        self.wakers.into_iter().for_each(Waker::wake);
        for work in self.works {
            running::spawn(site, work);
        }
    }
}

impl Site {
    pub(super) fn new(mut server: HttpServer) -> Self {
        server.catch_panics(mcp_sansio_async::panic_guard());
        let locked = Mutex::new(Locked {
            server,
            seats: Vec::new(),
            keeper: None,
            wakes_at: None,
            drained: Vec::new(),
        });
        let handlers = Threads::new("mcp-handler", HANDLERS_MAX);
        Self { locked, held: Held::default(), handlers }
    }

    /// To look at the server. Whatever panicked with the lock held, an observer of tasks say, has left
    /// the machine as it is between two steps.
    pub(super) fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To do something to the server and deal with what comes of it.
    pub(super) fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut Locked) -> T) -> T {
        let mut left = Left::default();
        let changed = {
            let mut locked = self.lock();
            let changed = catch_unwind(AssertUnwindSafe(|| change(&mut locked)));
            locked.settle(&mut left);
            changed
        };
        left.deal(self);
        changed.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let locked = self.locked.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = locked.keeper.take() {
            keeper.wake();
        }
    }
}

impl Locked {
    /// Sees to further work, to exchanges with something to send, and to a deadline that is nearer
    /// than the keeper of the time knows.
    fn settle(&mut self, left: &mut Left) {
        loop {
            // Whatever panics has had its event; the next ones are still to come.
            match catch_unwind(AssertUnwindSafe(|| self.server.poll_work())) {
                Ok(Some(work)) => left.works.push(work),
                Ok(None) => break,
                Err(_) => {}
            }
        }
        while let Some(exchange) = self.server.poll_ready() {
            left.wakers.extend(seat(&mut self.seats, exchange).and_then(|it| it.waker.take()));
        }
        if !self.drained.is_empty() && self.server.is_drained() {
            left.wakers.append(&mut self.drained);
        }
        let nearer = match (self.server.poll_timeout(), self.wakes_at) {
            (Some(deadline), Some(wakes_at)) => deadline < wakes_at,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if nearer {
            left.wakers.extend(self.keeper.take());
        }
    }

    /// Remembers whom to wake when there is something to send on an exchange.
    pub(super) fn wait(&mut self, exchange: ExchangeId, cx: &Context<'_>) {
        let slot = exchange.slot();
        if self.seats.len() <= slot {
            self.seats.resize_with(slot + 1, || None);
        }
        let waker = Some(cx.waker().clone());
        self.seats[slot] = Some(Seat { exchange, waker });
    }

    /// Nobody serves an exchange any more.
    pub(super) fn leave(&mut self, exchange: ExchangeId) {
        if seat(&mut self.seats, exchange).is_some() {
            self.seats[exchange.slot()] = None;
        }
    }

    pub(super) fn poll_drained(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.server.is_drained() {
            return Poll::Ready(());
        }
        if !self.drained.iter().any(|known| known.will_wake(cx.waker())) {
            self.drained.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

fn seat(seats: &mut [Option<Seat>], exchange: ExchangeId) -> Option<&mut Seat> {
    seats.get_mut(exchange.slot())?.as_mut().filter(|seat| seat.exchange == exchange)
}
