use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_sansio::Instant;
use mcp_sansio::http::ExchangeId;
use mcp_sansio_handlers::{HandlerCall, HttpServer};

use super::handler_task;
use super::request::BodyBudget;
use super::runtime::AnyRuntime;
use crate::StopHandle;
use crate::panic_guard;

/// A server on HTTP behind the lock that its exchanges share. It is held for the machine's own
/// work, never while a handler, a client or a waker is at work.
#[derive(Debug)]
pub(super) struct SharedServer {
    state: Mutex<ServerState>,
    /// The bodies of requests that are held.
    pub(super) body_budget: BodyBudget,
    /// Where handlers run.
    pub(super) runtime: Box<dyn AnyRuntime>,
}

#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) server: HttpServer,
    /// Who serves which exchange, by its slot.
    exchange_tasks: Vec<Option<ExchangeTask>>,
    /// The task that keeps the time, and when it wakes by itself.
    pub(super) timer_waker: Option<Waker>,
    pub(super) timer_deadline: Option<Instant>,
    /// The task that keeps events outside, where there is one, while it has nothing to do.
    pub(super) store_waker: Option<Waker>,
    /// Who waits for the end of all responses.
    drain_wakers: Vec<Waker>,
}

/// Who serves an exchange.
#[derive(Debug)]
struct ExchangeTask {
    /// A slot has one exchange after the other, and whoever served the last one may still be about
    /// to leave.
    exchange: ExchangeId,
    /// To be woken when there is something to send.
    waker: Option<Waker>,
    /// Ends whoever is stuck in sending.
    abort: Option<StopHandle>,
}

/// What is left to do once the lock is free: wakers and tasks are code of others.
#[derive(Debug, Default)]
struct Deferred {
    /// The common case is one.
    waker: Option<Waker>,
    wakers: Vec<Waker>,
    aborts: Vec<StopHandle>,
    calls: Vec<HandlerCall<'static>>,
}

impl Deferred {
    fn wake(&mut self, waker: Waker) {
        match self.waker {
            None => self.waker = Some(waker),
            Some(_) => self.wakers.push(waker),
        }
    }

    fn run(self, shared: &Arc<SharedServer>) {
        if let Some(waker) = self.waker {
            waker.wake();
        }
        // Hardly ever is there any of these.
        if self.wakers.is_empty() && self.aborts.is_empty() && self.calls.is_empty() {
            return;
        }
        for waker in self.wakers {
            waker.wake();
        }
        for abort in self.aborts {
            abort.stop();
        }
        for work in self.calls {
            handler_task::spawn(shared, work);
        }
    }
}

impl SharedServer {
    pub(super) fn new(mut server: HttpServer, runtime: Box<dyn AnyRuntime>) -> Self {
        server.catch_panics(panic_guard());
        let state = Mutex::new(ServerState {
            server,
            exchange_tasks: Vec::new(),
            timer_waker: None,
            timer_deadline: None,
            store_waker: None,
            drain_wakers: Vec::new(),
        });
        Self { state, body_budget: BodyBudget::default(), runtime }
    }

    pub(super) fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// To look at the server. Whatever panicked with the lock body_budget, an observer of tasks say, has left
    /// the machine as it is between two steps.
    pub(super) fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To do something to the server and deal with what comes of it.
    pub(super) fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut ServerState) -> T) -> T {
        self.change_until(change, |_| true)
    }

    /// The same for a change that another one follows without a wait where `goes_on` says so: a
    /// deadline that does not outlive it is not worth to wake anybody.
    pub(super) fn change_until<T>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut ServerState) -> T,
        is_last: impl FnOnce(&T) -> bool,
    ) -> T {
        let mut deferred = Deferred::default();
        // Written where it stays: what a request brings is large.
        let mut changed = None;
        let unwound = {
            let mut state = self.lock();
            let unwound = catch_unwind(AssertUnwindSafe(|| changed = Some(change(&mut state))));
            state.pump(&mut deferred);
            if changed.as_ref().is_none_or(is_last) {
                state.update_timer(&mut deferred);
            }
            unwound.err()
        };
        deferred.run(self);
        if let Some(panic) = unwound {
            resume_unwind(panic);
        }
        changed.expect("what did not panic has returned")
    }
}

impl Drop for SharedServer {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for waker in [state.timer_waker.take(), state.store_waker.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}

impl ServerState {
    /// Sees to further work, and to exchanges with something to send.
    fn pump(&mut self, deferred: &mut Deferred) {
        loop {
            // Whatever panics has had its event; the next ones are still to come.
            match catch_unwind(AssertUnwindSafe(|| self.server.poll_call())) {
                Ok(Some(work)) => deferred.calls.push(work),
                Ok(None) => break,
                Err(_) => {}
            }
        }
        while let Some(exchange) = self.server.poll_ready() {
            let Some(task) = exchange_task(&mut self.exchange_tasks, exchange) else { continue };
            if let Some(waker) = task.waker.take() {
                deferred.wake(waker);
            }
            if task.abort.is_some() && self.server.is_aborted(exchange) {
                deferred.aborts.extend(task.abort.take());
            }
        }
        if let Some(store_waker) = self.store_waker.take() {
            deferred.wake(store_waker);
        }
        if !self.drain_wakers.is_empty() && self.server.is_drained() {
            deferred.wakers.append(&mut self.drain_wakers);
        }
    }

    /// Sees to a deadline that is nearer than the timer task knows.
    fn update_timer(&mut self, deferred: &mut Deferred) {
        let nearer = match (self.server.poll_timeout(), self.timer_deadline) {
            (Some(deadline), Some(timer_deadline)) => deadline < timer_deadline,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if nearer && let Some(waker) = self.timer_waker.take() {
            deferred.wake(waker);
        }
    }

    /// Takes an entry for an exchange that is open, or finds it.
    fn exchange_task_or_insert(&mut self, exchange: ExchangeId) -> &mut ExchangeTask {
        let slot = exchange.slot();
        if self.exchange_tasks.len() <= slot {
            self.exchange_tasks.resize_with(slot + 1, || None);
        }
        let task = &mut self.exchange_tasks[slot];
        if task.as_ref().is_some_and(|task| task.exchange != exchange) {
            *task = None;
        }
        task.get_or_insert_with(|| ExchangeTask { exchange, waker: None, abort: None })
    }

    /// Remembers whom to wake when there is something to send on an exchange.
    pub(super) fn register_waker(&mut self, exchange: ExchangeId, cx: &Context<'_>) {
        let task = self.exchange_task_or_insert(exchange);
        if !task.waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            task.waker = Some(cx.waker().clone());
        }
    }

    /// Remembers how to end whoever serves an exchange.
    pub(super) fn set_abort_handle(&mut self, exchange: ExchangeId, abort: StopHandle) {
        self.exchange_task_or_insert(exchange).abort = Some(abort);
    }

    /// Nobody serves an exchange any more.
    pub(super) fn remove_exchange(&mut self, exchange: ExchangeId) {
        if exchange_task(&mut self.exchange_tasks, exchange).is_some() {
            self.exchange_tasks[exchange.slot()] = None;
        }
    }

    pub(super) fn poll_drained(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.server.is_drained() {
            return Poll::Ready(());
        }
        if !self.drain_wakers.iter().any(|known| known.will_wake(cx.waker())) {
            self.drain_wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

fn exchange_task(
    exchange_tasks: &mut [Option<ExchangeTask>],
    exchange: ExchangeId,
) -> Option<&mut ExchangeTask> {
    exchange_tasks.get_mut(exchange.slot())?.as_mut().filter(|task| task.exchange == exchange)
}
