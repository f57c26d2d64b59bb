use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_sansio::Instant;
use mcp_sansio::http::server::Transmit;
use mcp_sansio::http::{ExchangeId, RequestHead, Response, ResponseHead};
use mcp_sansio_handlers::HandlerCall;

use super::caller::Caller;
use super::handler_task::CompletedHandler;
use super::shared_server::{ServerState, SharedServer};
use crate::StopHandle;

/// The place of one exchange: to drop it before its response is complete is to have gone.
#[derive(Debug)]
pub(super) struct ServerExchange {
    shared: Arc<SharedServer>,
    exchange: ExchangeId,
    complete: bool,
}

/// How a response begins.
#[derive(Debug)]
pub(super) enum ResponseStart {
    /// With all of it.
    Full(Response),
    /// With its head; the place has the body.
    Streaming(ResponseHead),
    /// It does not: the connection is to be broken off.
    Aborted,
}

impl ServerExchange {
    /// Hands a request in. Where there is work, it is to be begun at once.
    pub(super) fn begin<'f>(
        shared: &Arc<SharedServer>,
        head: &RequestHead<'_>,
        body: &'f [u8],
        caller: &Caller<'_>,
    ) -> (Self, Option<HandlerCall<'f>>) {
        let (exchange, work) = shared.change_until(
            |state| match caller {
                Caller::Granted(grant) => {
                    state.server.handle_granted(head, body, grant, shared.now())
                }
                Caller::Named(principal) => {
                    state.server.handle_request(head, body, *principal, shared.now())
                }
            },
            |(_, work)| work.is_none(),
        );
        (Self { shared: Arc::clone(shared), exchange, complete: false }, work)
    }

    /// Hands in what the handler came to, and takes the response if it is there.
    pub(super) fn complete(&mut self, completed: CompletedHandler<'_>) -> Option<ResponseStart> {
        let Self { shared, exchange, complete } = self;
        shared.change(|state| {
            let now = shared.now();
            state.complete(completed, now);
            start_response(state, *exchange, complete, now)
        })
    }

    /// How the response begins.
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

    /// The next thing to send; `take` takes it while the lock is held.
    pub(super) fn poll<T>(
        &mut self,
        cx: &Context<'_>,
        take: impl FnOnce(Transmit<'_>) -> T,
    ) -> Poll<T> {
        let Self { shared, exchange, complete } = self;
        shared.change(|state| match next_transmit(state, *exchange, complete, shared.now(), take) {
            Some(taken) => Poll::Ready(taken),
            None => {
                // Under the same lock: nothing can come in between that wakes nobody.
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
        Transmit::Respond(response) => ResponseStart::Full(response),
        Transmit::Open(head) => ResponseStart::Streaming(head),
        // A head comes first; anything else ends a response that never had one.
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
    take: impl FnOnce(Transmit<'_>) -> T,
) -> Option<T> {
    let transmit = state.server.poll_transmit(exchange, now)?;
    *complete = matches!(transmit, Transmit::Respond(_) | Transmit::Finish | Transmit::Abort);
    let taken = take(transmit);
    if *complete {
        state.remove_exchange(exchange);
    }
    Some(taken)
}

impl Drop for ServerExchange {
    fn drop(&mut self) {
        if self.complete {
            // The slot may be another exchange's by now.
            return;
        }
        self.shared.change(|state| {
            state.remove_exchange(self.exchange);
            state.server.handle_disconnect(self.exchange, self.shared.now());
        });
    }
}
