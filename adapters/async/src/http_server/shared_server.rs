use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_sansio::Instant;
use mcp_sansio::http::{ExchangeId, RequestReader, SharedLimit, SharedResource};
use mcp_sansio_handlers::endpoint::{HandlerCall, HttpServer};
use mcp_sansio_sync::TaskCount;

use super::budget::Budget;
use super::exchange;
use super::health::Health;
use super::runtime::AnyRuntime;
use crate::clock::unix_time;
use crate::{StopHandle, panic_guard};

/// A server on HTTP, shared by its exchanges behind a lock. The lock is held only
/// while the machine runs, never while a handler or a client does. Wakers of exchanges run outside
/// of it; those of handlers that are cancelled or whose middleware waits run inside, so they must
/// only schedule, as those of runtimes do.
#[derive(Debug)]
pub(super) struct SharedServer {
    state: Mutex<ServerState>,
    /// Reads requests without the lock.
    pub(super) reader: RequestReader,
    /// The runtime of the handlers.
    pub(super) runtime: Arc<dyn AnyRuntime>,
    /// Handlers that run in tasks of their own.
    handler_tasks: TaskCount,
    /// The bytes of request bodies that are held.
    pub(super) bodies: Budget,
    /// The answers to health checks, if they are enabled.
    pub(super) health: OnceLock<Health>,
}

#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) server: HttpServer,
    /// The tasks that serve the exchanges, by slot.
    exchange_tasks: Vec<Option<ExchangeTask>>,
    /// The timer task, and the deadline that it waits for.
    pub(super) timer_waker: Option<Waker>,
    pub(super) timer_deadline: Option<Instant>,
    /// The store task, if there is one, while it waits for actions.
    pub(super) store_waker: Option<Waker>,
    /// Whether the store has executed all actions, as far as the store task knows.
    store_idle: bool,
    /// Tasks that wait for the end of all responses, or of all store actions.
    drain_wakers: Vec<Waker>,
}

/// The task that serves an exchange.
#[derive(Debug)]
struct ExchangeTask {
    /// Identifies the exchange: its slot is reused, and the task of the previous exchange may still
    /// be ending.
    exchange: ExchangeId,
    /// The waker for new data to send.
    waker: Option<Waker>,
    /// Aborts the task while it is blocked on sending.
    abort: Option<StopHandle>,
}

/// Work for after the lock is released: wakers and tasks run foreign code.
#[derive(Debug, Default)]
struct Deferred {
    /// Usually there is exactly one.
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
        // Rarely needed.
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
            exchange::spawn_handler(shared, work);
        }
    }
}

impl SharedServer {
    pub(super) fn new(mut server: HttpServer, runtime: Arc<dyn AnyRuntime>) -> Self {
        server.catch_panics(panic_guard());
        server.set_unix_time(Box::new(unix_time));
        let reader = server.reader();
        let limits = server.machine().options().limits_ref();
        let (total, per_caller) = (limits.bodies_bytes_max, limits.bodies_bytes_per_caller_max);
        let bodies = SharedLimit::new(SharedResource::BodyBytes, total, per_caller);
        let state = Mutex::new(ServerState {
            server,
            exchange_tasks: Vec::new(),
            timer_waker: None,
            timer_deadline: None,
            store_waker: None,
            store_idle: true,
            drain_wakers: Vec::new(),
        });
        Self {
            state,
            reader,
            runtime,
            handler_tasks: TaskCount::default(),
            bodies: Budget::new(bodies),
            health: OnceLock::new(),
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// Locks the server. A panic under the lock, for example in a task observer, leaves the machine
    /// in a state between two steps.
    pub(super) fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin_handler_task(&self) {
        self.handler_tasks.begin();
    }

    pub(super) fn end_handler_task(&self) {
        if self.handler_tasks.end() {
            let wakers = take(&mut self.lock().drain_wakers);
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Waits until no handler runs in a task of its own.
    pub(super) fn poll_handler_tasks(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        state.register_drain_waker(cx);
        if self.handler_tasks.await_end() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Changes the server and processes the resulting events.
    pub(super) fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut ServerState) -> T) -> T {
        self.change_until(change, |_| true)
    }

    /// Like [`change`](Self::change), for a change that is followed by another without waiting
    /// unless `is_last` returns true: a deadline that does not outlive it need not wake the timer
    /// task.
    pub(super) fn change_until<T>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut ServerState) -> T,
        is_last: impl FnOnce(&T) -> bool,
    ) -> T {
        let mut deferred = Deferred::default();
        // Written in place, since a request is large.
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
        changed.expect("a closure that did not panic has set it")
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
    /// Collects new handler calls, and wakes exchanges that have data to send.
    fn pump(&mut self, deferred: &mut Deferred) {
        loop {
            // An event that panics is consumed; the next ones follow.
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
            self.store_idle = false;
            deferred.wake(store_waker);
        }
        if !self.drain_wakers.is_empty() && self.server.is_drained() {
            deferred.wakers.append(&mut self.drain_wakers);
        }
    }

    /// Wakes the timer task for an earlier deadline.
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

    /// Returns the entry of an open exchange, creating it if needed.
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

    /// Registers the task to wake when an exchange has data to send.
    pub(super) fn register_waker(&mut self, exchange: ExchangeId, cx: &Context<'_>) {
        let task = self.exchange_task_or_insert(exchange);
        if !task.waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            task.waker = Some(cx.waker().clone());
        }
    }

    /// Sets the handle that aborts the task of an exchange.
    pub(super) fn set_abort_handle(&mut self, exchange: ExchangeId, abort: StopHandle) {
        self.exchange_task_or_insert(exchange).abort = Some(abort);
    }

    /// Removes the entry of an exchange that is no longer served.
    pub(super) fn remove_exchange(&mut self, exchange: ExchangeId) {
        if exchange_task(&mut self.exchange_tasks, exchange).is_some() {
            self.exchange_tasks[exchange.slot()] = None;
        }
    }

    /// Marks the store as idle until the next change, and returns the tasks that wait for it.
    pub(super) fn set_store_idle(&mut self) -> Vec<Waker> {
        self.store_idle = true;
        take(&mut self.drain_wakers)
    }

    /// Waits until the store has executed all actions.
    pub(super) fn poll_stored(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.store_idle {
            return Poll::Ready(());
        }
        self.register_drain_waker(cx);
        Poll::Pending
    }

    pub(super) fn poll_drained(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.server.is_drained() {
            return Poll::Ready(());
        }
        self.register_drain_waker(cx);
        Poll::Pending
    }

    fn register_drain_waker(&mut self, cx: &Context<'_>) {
        if !self.drain_wakers.iter().any(|known| known.will_wake(cx.waker())) {
            self.drain_wakers.push(cx.waker().clone());
        }
    }
}

fn exchange_task(
    exchange_tasks: &mut [Option<ExchangeTask>],
    exchange: ExchangeId,
) -> Option<&mut ExchangeTask> {
    exchange_tasks.get_mut(exchange.slot())?.as_mut().filter(|task| task.exchange == exchange)
}
