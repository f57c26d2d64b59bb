use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_sansio::http::{ExchangeId, RequestHead, Response, ResponseHead, ServerTransmit};
use mcp_sansio::{Caller, Instant};
use mcp_sansio_handlers::endpoint::HandlerCall;

use super::handler_task::CompletedHandler;
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
        head: &RequestHead<'_>,
        body: &'f [u8],
        caller: &Caller,
    ) -> (Self, Option<HandlerCall<'f>>) {
        let mut request = shared.reader.read(head, body);
        let (exchange, work) = shared.change_until(
            |state| state.server.handle_read_request(head, &mut request, caller, shared.now()),
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
