use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_sansio::http::{
    Admission, ExchangeId, RequestHead, Response, ResponseHead, ServerTransmit,
};
use mcp_sansio::peer::RequestHandle;
use mcp_sansio::{Caller, Instant};
use mcp_sansio_handlers::endpoint::{HandlerCall, HandlerOutput, HandlerPoll, PendingHandler};

use super::shared_server::{ServerState, SharedServer};
use crate::StopHandle;

/// One exchange with a client. Dropping it before its response is complete reports a disconnect.
#[derive(Debug)]
pub(super) struct ServerExchange {
    shared: Arc<SharedServer>,
    exchange: ExchangeId,
    complete: bool,
}

/// How a response starts.
#[derive(Debug)]
pub(super) enum ResponseStart {
    /// With a complete response.
    Full(Response),
    /// With a head; poll the exchange for the body.
    Streaming(ResponseHead),
    /// There is no response: abort the connection.
    Aborted,
}

impl ServerExchange {
    /// Passes a request to the server. A returned handler call must be started at once.
    pub(super) fn begin<'f>(
        shared: &Arc<SharedServer>,
        admission: Admission,
        head: &RequestHead<'_>,
        body: &'f [u8],
        caller: &Caller,
    ) -> (Self, Option<HandlerCall<'f>>) {
        let mut request = shared.reader.read_admitted(admission, head, body, caller);
        let (exchange, work) = shared.change_until(
            |state| state.server.handle_read_request(head, &mut request, shared.now()),
            |(_, work)| work.is_none(),
        );
        (Self { shared: Arc::clone(shared), exchange, complete: false }, work)
    }

    /// Passes the output of the handler to the server, and returns the start of the response if it
    /// is ready.
    pub(super) fn complete(&mut self, completed: CompletedHandler<'_>) -> Option<ResponseStart> {
        let Self { shared, exchange, complete } = self;
        shared.change(|state| {
            let now = shared.now();
            state.complete(completed, now);
            start_response(state, *exchange, complete, now)
        })
    }

    /// Waits for the start of the response.
    pub(super) fn poll_response_start(&mut self, cx: &Context<'_>) -> Poll<ResponseStart> {
        let Self { shared, exchange, complete } = self;
        shared.change(|state| match start_response(state, *exchange, complete, shared.now()) {
            Some(start) => Poll::Ready(start),
            None => {
                state.register_waker(*exchange, cx);
                Poll::Pending
            }
        })
    }

    /// Waits for the next data to send; `take` receives it while the lock is held.
    pub(super) fn poll<T>(
        &mut self,
        cx: &Context<'_>,
        take: impl FnOnce(ServerTransmit<'_>) -> T,
    ) -> Poll<T> {
        let Self { shared, exchange, complete } = self;
        shared.change(|state| match next_transmit(state, *exchange, complete, shared.now(), take) {
            Some(taken) => Poll::Ready(taken),
            None => {
                // Registered under the same lock, so that no wake-up is missed.
                state.register_waker(*exchange, cx);
                Poll::Pending
            }
        })
    }
}

fn start_response(
    state: &mut ServerState,
    exchange: ExchangeId,
    complete: &mut bool,
    now: Instant,
) -> Option<ResponseStart> {
    let start = next_transmit(state, exchange, complete, now, |transmit| match transmit {
        ServerTransmit::Respond(response) => ResponseStart::Full(response),
        ServerTransmit::Open(head) => ResponseStart::Streaming(head),
        // The head comes first; any other transmit ends a response that never had one.
        _ => ResponseStart::Aborted,
    })?;
    if matches!(start, ResponseStart::Streaming(_))
        && let Some(abort) = StopHandle::current()
    {
        state.set_abort_handle(exchange, abort);
    }
    Some(start)
}

fn next_transmit<T>(
    state: &mut ServerState,
    exchange: ExchangeId,
    complete: &mut bool,
    now: Instant,
    take: impl FnOnce(ServerTransmit<'_>) -> T,
) -> Option<T> {
    let transmit = state.server.poll_transmit(exchange, now)?;
    *complete = matches!(
        transmit,
        ServerTransmit::Respond(_) | ServerTransmit::Finish | ServerTransmit::Abort
    );
    let taken = take(transmit);
    if *complete {
        state.remove_exchange(exchange);
    }
    Some(taken)
}

impl Drop for ServerExchange {
    fn drop(&mut self) {
        if self.complete {
            // The slot may belong to another exchange by now.
            return;
        }
        self.shared.change(|state| {
            state.remove_exchange(self.exchange);
            state.server.handle_disconnect(self.exchange, self.shared.now());
        });
    }
}

// ------------------------------------------------------------------ handler task

/// The output of a handler that has completed.
#[derive(Debug)]
pub(super) struct CompletedHandler<'f> {
    request: RequestHandle,
    finished: HandlerOutput<'f>,
}

impl ServerState {
    /// Answers a request with the output of its handler.
    pub(super) fn complete(&mut self, completed: CompletedHandler<'_>, now: Instant) {
        let CompletedHandler { request, finished } = completed;
        // The server catches the panics of handlers; a task observer may still panic.
        if catch_unwind(AssertUnwindSafe(|| self.server.finish(finished, now))).is_err() {
            self.server.fail(request, now);
        }
    }
}

/// Polls a handler once. If it is pending, it is moved to its own task, so that it outlives the
/// connection of its request, which legacy clients may resume.
pub(super) fn start_handler<'f>(
    shared: &Arc<SharedServer>,
    work: HandlerCall<'f>,
    cx: &mut Context<'_>,
) -> Option<CompletedHandler<'f>> {
    let request = work.handle();
    match work.run() {
        HandlerPoll::Ready(finished) => Some(CompletedHandler { request, finished }),
        HandlerPoll::Pending(mut running) => {
            if let Poll::Ready(finished) = Pin::new(&mut running).poll_at(cx, shared.now()) {
                return finished.map(|finished| CompletedHandler { request, finished });
            }
            shared.change(|state| state.server.track(&running));
            let guard = RequestGuard::new(Arc::clone(shared), request);
            shared.runtime.spawn(Box::pin(run_until_ready(guard, running)));
            None
        }
    }
}

/// Runs a handler call without a new request in its own task.
pub(super) fn spawn_handler(shared: &Arc<SharedServer>, work: HandlerCall<'static>) {
    let guard = RequestGuard::new(Arc::clone(shared), work.handle());
    shared.runtime.spawn(Box::pin(async move {
        match work.run() {
            HandlerPoll::Ready(finished) => guard.end(Some(finished)),
            HandlerPoll::Pending(running) => {
                guard.shared.change(|state| state.server.track(&running));
                run_until_ready(guard, running).await;
            }
        }
    }));
}

async fn run_until_ready(guard: RequestGuard, mut running: PendingHandler) {
    let finished = poll_fn(|cx| Pin::new(&mut running).poll_at(cx, guard.shared.now())).await;
    guard.end(finished);
}

/// A request whose handler runs in its own task. If the runtime drops the task, or cannot run it,
/// the request fails.
struct RequestGuard {
    shared: Arc<SharedServer>,
    request: Option<RequestHandle>,
}

impl RequestGuard {
    fn new(shared: Arc<SharedServer>, request: RequestHandle) -> Self {
        shared.begin_handler_task();
        Self { shared, request: Some(request) }
    }

    /// Ends the request; `None` if its client no longer waits for it.
    fn end(mut self, finished: Option<HandlerOutput<'_>>) {
        if let (Some(request), Some(finished)) = (self.request.take(), finished) {
            let shared = &self.shared;
            shared.change(|state| {
                state.complete(CompletedHandler { request, finished }, shared.now())
            });
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            self.shared.change(|state| state.server.fail(request, self.shared.now()));
        }
        self.shared.end_handler_task();
    }
}
