//! Handler calls, which run outside of the lock that guards an
//! [`HttpServer`](super::endpoint::HttpServer).

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use mcp_sansio::http::CallerHandle;
use mcp_sansio::jsonrpc::RequestId;
use mcp_sansio::peer::{Request, RequestHandle};
use mcp_sansio::{Instant, Spawner};
use mcp_sansio_sync::Mutex;
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};

use super::context::CommandSender;
use super::dispatch::{Invocation, into_owned_request};
use super::executor::PanicGuard;
use super::middleware::{EndpointClock, ServerLayers as _, Wrapped};
use super::reply::Outcome;
use super::server::Handlers;
use super::threading::{Step, ThreadSafe, Threading};

/// A request and its handler, to be run outside of any lock.
pub struct HandlerCall<'f, K: Threading = ThreadSafe> {
    pub(super) request: Request<'f>,
    pub(super) handlers: Arc<Handlers<K>>,
    /// The handler, or the outcome if there is no handler.
    pub(super) function: Result<K::Function, Box<Outcome>>,
    /// The inputs of the middleware, if there is any.
    pub(super) wrapped: Option<Box<Wrapped>>,
    pub(super) commands: CommandSender,
    pub(super) tasks: bool,
    /// Whether the request is a task.
    pub(super) is_task: bool,
    /// The JSON-RPC id, unless the request is answered or `wrapped` has it.
    pub(super) id: Option<RequestId>,
    /// Whether the request may carry a state from the client.
    pub(super) sealed: bool,
    /// The time at which the call was created.
    pub(super) now: Instant,
    pub(super) guard: PanicGuard,
    pub(super) spawner: Option<Spawner>,
    /// The observation of the request, if the server has an observer.
    pub(super) observation: Option<crate::executor::SharedObservation>,
    /// The details of the request, if the server keeps any.
    pub(super) details: Option<Arc<super::context::RequestDetails>>,
}

/// The state of a [`HandlerCall`] after it was run.
#[derive(Debug)]
pub enum HandlerPoll<'f, K: Threading = ThreadSafe> {
    /// The answer, for [`HttpServer::finish`](super::endpoint::HttpServer::finish).
    Ready(HandlerOutput<'f>),
    /// The handler is pending: pass it to
    /// [`HttpServer::track`](super::endpoint::HttpServer::track), then poll it.
    Pending(PendingHandler<K>),
}

/// The outcome of a handler, with its request.
#[derive(Debug)]
pub struct HandlerOutput<'f> {
    pub(super) request: Request<'f>,
    pub(super) outcome: Outcome,
}

/// The future of a pending handler. Resolves to `None` if its answer is no longer needed.
///
/// Poll it with [`poll_at`](Self::poll_at), which also tells [middleware](super::middleware) the
/// time. Polled as a future, middleware sees the time of the last input to the
/// [`HttpServer`](super::endpoint::HttpServer).
///
/// Dropping it abandons the request unanswered; the request then stays open until its client gives
/// up.
pub struct PendingHandler<K: Threading = ThreadSafe> {
    /// `None` once the handler is done.
    task: Option<K::Future<Outcome>>,
    pub(super) request: Option<Request<'static>>,
    guard: PanicGuard,
    /// The time of the middleware, if there is any.
    clock: Option<Arc<dyn EndpointClock>>,
    pub(super) cancel_signal: Arc<CancelSignal>,
}

/// A pending handler.
#[derive(Debug)]
pub(super) struct TrackedHandler {
    pub(super) cancel_signal: Arc<CancelSignal>,
    /// The request to create a task from; `None` if the server has no tasks.
    pub(super) request: Option<Request<'static>>,
    /// The caller whose quota of running handlers it counts against.
    pub(super) caller: Option<CallerHandle>,
}

/// Signals a handler that its answer is no longer needed.
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

    /// Registers a waker for the cancellation. Check [`is_cancelled`] afterwards.
    ///
    /// [`is_cancelled`]: Self::is_cancelled
    fn register(&self, waker: &Waker) {
        let is_known = |known: &Waker| known.will_wake(waker);
        if !self.waker.lock(|known| known.as_ref().is_some_and(is_known)) {
            // Wakers are cloned and dropped outside of the lock, because they run foreign code.
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
    /// Returns the handle of the request, for
    /// [`HttpServer::fail`](super::endpoint::HttpServer::fail).
    #[must_use]
    pub const fn handle(&self) -> RequestHandle {
        self.request.handle
    }

    /// Calls the handler. A plain one does its work in this call.
    #[must_use]
    pub fn run(self) -> HandlerPoll<'f, K> {
        let Self { mut request, handlers, function, wrapped, commands, .. } = self;
        let Self { tasks, is_task, id, sealed, now, guard, spawner, .. } = self;
        let observation = self.observation;
        let details = self.details;
        if sealed && let Err(error) = handlers.open_state(&mut request, now) {
            return HandlerPoll::Ready(HandlerOutput { request, outcome: Outcome::Error(error) });
        }
        let clock = wrapped.as_ref().map(|wrapped| Arc::clone(&wrapped.clock));
        let invocation = Invocation {
            handlers: &handlers,
            function: match function {
                Ok(ref function) => Ok(function),
                Err(outcome) => Err(outcome),
            },
            commands: &commands,
            tasks,
            is_task,
            id: id.as_ref(),
            guard,
            spawner: spawner.as_ref(),
            observation: observation.clone(),
            details,
        };
        let call = || match handlers.layers.as_ref().zip(wrapped) {
            Some((layers, wrapped)) => layers.call(invocation, wrapped, &request),
            None => invocation.call(&request),
        };
        let step = super::executor::call_observed(observation, call);
        match step {
            Step::Ready(outcome) => HandlerPoll::Ready(HandlerOutput { request, outcome }),
            Step::Pending(task) => HandlerPoll::Pending(PendingHandler {
                task: Some(task),
                request: Some(into_owned_request(request, tasks, handlers.sealing.as_deref())),
                guard,
                clock,
                cancel_signal: Arc::default(),
            }),
        }
    }
}

mcp_sansio::partial_debug! { impl<K: Threading> Debug for HandlerCall<'_, K> { request, .. } }

mcp_sansio::partial_debug! { impl<K: Threading> Debug for PendingHandler<K> { request, .. } }

impl<K: Threading> PendingHandler<K> {
    /// Polls the handler at the time `now`.
    pub fn poll_at(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<Option<HandlerOutput<'static>>> {
        if let Some(clock) = &self.clock {
            clock.advance(now);
        }
        self.poll(cx)
    }
}

impl<K: Threading> Future for PendingHandler<K> {
    type Output = Option<HandlerOutput<'static>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let running = &mut *self;
        let Some(task) = &mut running.task else { return Poll::Ready(None) };
        running.cancel_signal.register(cx.waker());
        // Checked after the waker is registered: a later cancellation wakes it.
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
