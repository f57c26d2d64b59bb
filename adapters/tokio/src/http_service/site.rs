use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use mcp_sansio::Instant;
use mcp_sansio::handler::{Finished, HttpServer, Ran, Running, Work};
use mcp_sansio::http::{ExchangeId, Transmit};
use mcp_sansio_async::Timer;

use crate::{TokioTimer, now};

/// A server on HTTP behind the lock that its exchanges share. It is held for the machine's own
/// work, never while a handler or a client is waited for.
#[derive(Debug)]
pub(super) struct Site {
    locked: Mutex<Locked>,
}

#[derive(Debug)]
pub(super) struct Locked {
    pub(super) server: HttpServer,
    /// Who waits for something to send, by the slot of the exchange.
    waiting: Vec<Option<Waker>>,
    /// The task that keeps the time, and when it wakes by itself.
    keeper: Option<Waker>,
    wakes_at: Option<Instant>,
    /// Who waits for the end of all responses.
    drained: Option<Waker>,
}

impl Site {
    pub(super) fn new(server: HttpServer) -> Self {
        Self {
            locked: Mutex::new(Locked {
                server,
                waiting: Vec::new(),
                keeper: None,
                wakes_at: None,
                drained: None,
            }),
        }
    }

    /// Whatever panicked with the lock held has left the machine as it was between two steps.
    pub(super) fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a handler that goes on.
    pub(super) fn attend(self: &Arc<Self>, running: &Running) {
        let mut locked = self.lock();
        locked.server.attend(running, now());
        locked.settle(self);
    }

    /// Hands in what a handler came to.
    pub(super) fn finish(self: &Arc<Self>, finished: Finished<'_>) {
        let mut locked = self.lock();
        locked.server.finish(finished, now());
        locked.settle(self);
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
    /// Deals with what the machine has come to: further work, exchanges with something to send, a
    /// nearer deadline.
    pub(super) fn settle(&mut self, site: &Arc<Site>) {
        while let Some(work) = self.server.poll_work(now()) {
            tokio::spawn(run(Arc::clone(site), work));
        }
        while let Some(exchange) = self.server.poll_ready() {
            if let Some(waiting) = self.waiting.get_mut(exchange.slot())
                && let Some(waker) = waiting.take()
            {
                waker.wake();
            }
        }
        let nearer = match (self.server.poll_timeout(), self.wakes_at) {
            (Some(deadline), Some(wakes_at)) => deadline < wakes_at,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if nearer && let Some(keeper) = self.keeper.take() {
            keeper.wake();
        }
        if self.drained.is_some()
            && self.server.is_drained()
            && let Some(waker) = self.drained.take()
        {
            waker.wake();
        }
    }

    /// Remembers whom to wake when there is something to send on an exchange.
    fn wait(&mut self, exchange: ExchangeId, cx: &Context<'_>) {
        let slot = exchange.slot();
        if self.waiting.len() <= slot {
            self.waiting.resize(slot + 1, None);
        }
        match &mut self.waiting[slot] {
            Some(known) if known.will_wake(cx.waker()) => {}
            known => *known = Some(cx.waker().clone()),
        }
    }

    pub(super) fn poll_drained(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.server.is_drained() {
            return Poll::Ready(());
        }
        self.drained = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Runs work that came from no new request.
async fn run(site: Arc<Site>, work: Work<'static>) {
    let finished = match work.run() {
        Ran::Done(finished) => Some(finished),
        Ran::Running(running) => {
            site.attend(&running);
            running.await
        }
    };
    if let Some(finished) = finished {
        site.finish(finished);
    }
}

/// Keeps the deadlines of a site, and passes on what its handlers send, until it is gone.
pub(super) async fn keep_time(site: Weak<Site>) {
    let mut timer = TokioTimer::new();
    poll_fn(|cx| {
        loop {
            let Some(site) = site.upgrade() else { return Poll::Ready(()) };
            let mut locked = site.lock();
            let now = now();
            locked.keeper = Some(cx.waker().clone());
            locked.server.poll_handlers(cx, now);
            if locked.server.poll_timeout().is_some_and(|deadline| deadline <= now) {
                locked.server.handle_timeout(now);
            }
            // Whatever comes nearer from here on wakes this task.
            locked.wakes_at = locked.server.poll_timeout();
            locked.settle(&site);
            let deadline = locked.server.poll_timeout();
            drop(locked);
            match deadline {
                None => return Poll::Pending,
                Some(deadline) if timer.poll_until(cx, deadline).is_pending() => {
                    return Poll::Pending;
                }
                Some(_) => {}
            }
        }
    })
    .await;
}

/// The place of one exchange: to drop it before its response is complete is to have gone.
#[derive(Debug)]
pub(super) struct Place {
    site: Arc<Site>,
    exchange: ExchangeId,
    complete: bool,
}

impl Place {
    pub(super) const fn new(site: Arc<Site>, exchange: ExchangeId) -> Self {
        Self { site, exchange, complete: false }
    }

    /// The first thing to send.
    pub(super) fn poll_head(&mut self, cx: &Context<'_>) -> Poll<Transmit<'static>> {
        self.poll(cx, |transmit| match transmit {
            Transmit::Respond(response) => Transmit::Respond(response),
            Transmit::Open(head) => Transmit::Open(head),
            _ => Transmit::Abort,
        })
    }

    /// The next thing to send; `take` takes it while the lock is held.
    pub(super) fn poll<T>(
        &mut self,
        cx: &Context<'_>,
        take: impl FnOnce(Transmit<'_>) -> T,
    ) -> Poll<T> {
        let mut locked = self.site.lock();
        let Some(transmit) = locked.server.poll_transmit(self.exchange, now()) else {
            locked.wait(self.exchange, cx);
            return Poll::Pending;
        };
        self.complete =
            matches!(transmit, Transmit::Respond(_) | Transmit::Finish | Transmit::Abort);
        let taken = take(transmit);
        if self.complete {
            locked.settle(&self.site);
        }
        Poll::Ready(taken)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut locked = self.site.lock();
        if let Some(waiting) = locked.waiting.get_mut(self.exchange.slot()) {
            *waiting = None;
        }
        if !self.complete {
            locked.server.handle_disconnect(self.exchange, now());
            locked.settle(&self.site);
        }
    }
}
