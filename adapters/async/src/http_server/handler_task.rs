use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_sansio::Instant;
use mcp_sansio::peer::RequestHandle;
use mcp_sansio_handlers::endpoint::{HandlerCall, HandlerOutput, HandlerPoll, PendingHandler};

use super::shared_server::{ServerState, SharedServer};

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
pub(super) fn start<'f>(
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
pub(super) fn spawn(shared: &Arc<SharedServer>, work: HandlerCall<'static>) {
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
