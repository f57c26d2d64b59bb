//! The work of handlers, done outside of the lock that guards an [`HttpServer`](super::HttpServer).

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use mcp_sansio::Instant;
use mcp_sansio::http::Principal;
use mcp_sansio::http::server::CallerHandle;
use mcp_sansio::peer::{Request, RequestHandle};
use mcp_sansio_sync::Mutex;
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};

use super::context::CommandSender;
use super::dispatch::{Invocation, into_owned_request};
use super::panics::PanicGuard;
use super::reply::Outcome;
use super::server::Handlers;
use super::threading::{Step, ThreadSafe, Threading};

/// A request and the handler that it goes to: to be run outside of any lock.
pub struct HandlerCall<'f, K: Threading = ThreadSafe> {
    pub(super) request: Request<'f>,
    pub(super) handlers: Arc<Handlers<K>>,
    /// What handles it, or what is answered where nothing does.
    pub(super) function: Result<K::Function, Box<Outcome>>,
    pub(super) commands: CommandSender,
    pub(super) principal: Option<Principal>,
    pub(super) tasks: bool,
    /// Whether it is a task.
    pub(super) is_task: bool,
    /// Whether a state in it comes from the client.
    pub(super) sealed: bool,
    /// When it was made.
    pub(super) now: Instant,
    pub(super) guard: PanicGuard,
}

/// What running a [`HandlerCall`] comes to.
#[derive(Debug)]
pub enum HandlerPoll<'f, K: Threading = ThreadSafe> {
    /// The answer, for [`HttpServer::finish`](super::HttpServer::finish).
    Ready(HandlerOutput<'f>),
    /// The handler goes on: give it to [`HttpServer::track`](super::HttpServer::track), then poll it.
    Pending(PendingHandler<K>),
}

/// What a handler came to.
#[derive(Debug)]
pub struct HandlerOutput<'f> {
    pub(super) request: Request<'f>,
    pub(super) outcome: Outcome,
}

/// A handler that goes on. It is done with `None` when nobody waits for it any more.
///
/// To drop it is to give up without an answer; the request then waits until its client gives up.
pub struct PendingHandler<K: Threading = ThreadSafe> {
    /// `None` once it is done.
    task: Option<K::Task>,
    pub(super) request: Option<Request<'static>>,
    guard: PanicGuard,
    pub(super) cancel_signal: Arc<CancelSignal>,
}

/// A handler that goes on.
#[derive(Debug)]
pub(super) struct TrackedHandler {
    pub(super) cancel_signal: Arc<CancelSignal>,
    /// What a task is made of; only where there are tasks.
    pub(super) request: Option<Request<'static>>,
    /// Whose share it takes from.
    pub(super) caller: Option<CallerHandle>,
}

/// Tells a handler that nobody waits for it any more.
#[derive(Debug, Default)]
pub(super) struct CancelSignal {
    cancelled: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl CancelSignal {
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        let waker = self.waker.lock(Option::take);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Says whom to wake when nobody waits for the handler any more. Ask [`is_cancelled`] after it.
    ///
    /// [`is_cancelled`]: Self::is_cancelled
    fn register(&self, waker: &Waker) {
        let is_known = |known: &Waker| known.will_wake(waker);
        if !self.waker.lock(|known| known.as_ref().is_some_and(is_known)) {
            // Wakers are cloned and dropped outside the lock: they are code of others.
            let waker = waker.clone();
            let old = self.waker.lock(|known| known.replace(waker));
            drop(old);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }
}

impl<'f, K: Threading> HandlerCall<'f, K> {
    /// The request, to name it to [`HttpServer::fail`](super::HttpServer::fail).
    #[must_use]
    pub const fn handle(&self) -> RequestHandle {
        self.request.handle
    }

    /// Calls the handler. A plain one does its work in here.
    #[must_use]
    pub fn run(self) -> HandlerPoll<'f, K> {
        let Self { mut request, handlers, function, commands, principal, .. } = self;
        let Self { tasks, is_task, sealed, now, guard, .. } = self;
        if sealed && let Err(error) = handlers.sealing.open(&mut request, principal.as_ref(), now) {
            return HandlerPoll::Ready(HandlerOutput { request, outcome: Outcome::Error(error) });
        }
        let invocation = Invocation {
            handlers: &handlers,
            function: match function {
                Ok(ref function) => Ok(function),
                Err(outcome) => Err(outcome),
            },
            commands: &commands,
            principal: principal.as_ref(),
            #[cfg(feature = "protection")]
            on_http: true,
            tasks,
            is_task,
            guard,
        };
        match invocation.call(&request) {
            Step::Ready(outcome) => HandlerPoll::Ready(HandlerOutput { request, outcome }),
            Step::Pending(task) => HandlerPoll::Pending(PendingHandler {
                task: Some(task),
                request: Some(into_owned_request(request, tasks, &handlers.sealing)),
                guard,
                cancel_signal: Arc::default(),
            }),
        }
    }
}

impl<K: Threading> fmt::Debug for HandlerCall<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerCall").field("request", &self.request).finish_non_exhaustive()
    }
}

impl<K: Threading> fmt::Debug for PendingHandler<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingHandler").field("request", &self.request).finish_non_exhaustive()
    }
}

impl<K: Threading> Future for PendingHandler<K> {
    type Output = Option<HandlerOutput<'static>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let running = &mut *self;
        let Some(task) = &mut running.task else { return Poll::Ready(None) };
        running.cancel_signal.register(cx.waker());
        // After the waker is there: whoever cancels from here on wakes it.
        if running.cancel_signal.is_cancelled() {
            running.guard.drop(running.task.take());
            return Poll::Ready(None);
        }
        let outcome = match running.guard.run(|| Pin::new(task).poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(outcome)) => outcome,
            Err(panicked) => panicked.into(),
        };
        running.guard.drop(running.task.take());
        Poll::Ready(running.request.take().map(|request| HandlerOutput { request, outcome }))
    }
}
