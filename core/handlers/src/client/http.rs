use core::task::Context;

use mcp_sansio::http::{ClientTransmit, ExchangeFailure, ExchangeId, IncomingResponse};
use mcp_sansio::peer::ClientMachine as _;
use mcp_sansio::{Instant, Recorded, Spawner};

use super::endpoint::ClientEndpoint;
use crate::executor::PanicGuard;
use crate::threading::{ThreadSafe, Threading};

/// The machine of a client over HTTP.
pub(crate) type HttpClient = Recorded<mcp_sansio::http::Client>;

/// The client's side of one connection over HTTP with its host: see [`HttpEndpoint`].
pub type HttpClientEndpoint<K = ThreadSafe> = ClientEndpoint<K, HttpClient>;

/// The client's side of an HTTP connection with its application attached. An adapter drives it.
///
/// An adapter performs exchanges and fires timers; it contains no protocol logic. Its loop:
///
/// 1. Call [`poll_handlers`](Self::poll_handlers), so that handlers make progress.
/// 2. Call [`poll_transmit`](Self::poll_transmit) until it returns `None`: begin the exchanges to
///    send, drop those to abort.
/// 3. Wait for the first of: input from any exchange in progress, independent of the others (but no
///    body data while [`is_congested`](Self::is_congested)), the deadline of
///    [`poll_timeout`](Self::poll_timeout), the waker of step 1.
/// 4. Pass the input on, per exchange in this order: [`handle_response`](Self::handle_response) for
///    the head of the response, [`handle_body`](Self::handle_body) for each piece of its body on
///    arrival, [`handle_body_end`](Self::handle_body_end). If the exchange fails, call
///    [`handle_exchange_failed`](Self::handle_exchange_failed) in place of the remaining calls. At
///    the deadline call [`handle_timeout`](Self::handle_timeout). Start again.
///
/// The loop ends when [`is_drained`](Self::is_drained) returns `true`.
pub trait HttpEndpoint {
    /// Runs the application's functions in `guard`:
    /// see [`Endpoint::catch_panics`](crate::endpoint::Endpoint::catch_panics).
    fn catch_panics(&mut self, guard: PanicGuard) {
        let _ = guard;
    }

    /// Runs blocking handlers with `spawn`: see
    /// [`Endpoint::set_spawner`](crate::endpoint::Endpoint::set_spawner).
    fn set_spawner(&mut self, spawn: Spawner) {
        let _ = spawn;
    }

    /// Handles the head of a response.
    fn handle_response(&mut self, exchange: ExchangeId, head: &IncomingResponse<'_>, now: Instant);

    /// Handles a piece of a response body, split at any position.
    fn handle_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant);

    /// Handles the end of a response body. The exchange is complete.
    fn handle_body_end(&mut self, exchange: ExchangeId, now: Instant);

    /// Handles the failure of an exchange, before or during its response. The exchange is complete.
    fn handle_exchange_failed(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    );

    /// Fires the timers that are due at `now`. Extra calls do nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// Polls the handlers that are ready, and takes the application's commands. The waker in `cx`
    /// is woken when there is more to do.
    fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant);

    /// Returns the next action for the adapter, if any.
    fn poll_transmit(&mut self) -> Option<ClientTransmit>;

    /// Returns when to call [`handle_timeout`](Self::handle_timeout), if no input comes earlier.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Whether so much is queued for sending that no body should be read. Keep reading the heads of
    /// responses: they free space in the queue.
    fn is_congested(&self) -> bool;

    /// Whether the connection is closed and nothing is left to send.
    fn is_drained(&self) -> bool;

    /// Whether the connection is closed, though the server may still have to be notified.
    fn is_closed(&self) -> bool;

    /// Checks that the tables of the endpoint and its machine match each other, for tests. Checks
    /// nothing by default.
    ///
    /// # Panics
    ///
    /// The tables disagree, which is a bug of the endpoint.
    fn assert_consistent(&self)
    where
        Self: Sized,
    {
    }

    /// Closes the connection from this side. Keep driving it until it [is
    /// drained](Self::is_drained).
    fn close(&mut self, now: Instant);
}

impl<K: Threading> HttpClientEndpoint<K> {
    /// Passes messages between the machine and the authorization until both are idle.
    fn pump(&mut self, now: Instant) {
        loop {
            self.dispatch_queued(now);
            if !self.authorization.pump(&mut self.machine, now) {
                return;
            }
        }
    }
}

impl<K: Threading> HttpEndpoint for HttpClientEndpoint<K> {
    fn catch_panics(&mut self, guard: PanicGuard) {
        self.set_guard(guard);
        self.authorization.set_guard(guard);
    }

    fn set_spawner(&mut self, spawn: Spawner) {
        self.spawner = Some(spawn);
    }

    fn handle_response(&mut self, exchange: ExchangeId, head: &IncomingResponse<'_>, now: Instant) {
        if let Some(exchange) = self.authorization.handle_response(exchange, head, now) {
            self.machine.handle_response(exchange, head, now);
        }
        self.pump(now);
    }

    fn handle_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant) {
        if let Some(exchange) = self.authorization.handle_body(exchange, bytes, now) {
            self.machine.handle_body(exchange, bytes, now);
        }
        self.pump(now);
    }

    fn handle_body_end(&mut self, exchange: ExchangeId, now: Instant) {
        if let Some(exchange) = self.authorization.handle_body_end(exchange, now) {
            self.machine.handle_body_end(exchange, now);
        }
        self.pump(now);
    }

    fn handle_exchange_failed(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    ) {
        if let Some(exchange) = self.authorization.handle_exchange_failed(exchange, failure, now) {
            self.machine.handle_exchange_failed(exchange, failure, now);
        }
        self.pump(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.authorization.handle_timeout(now);
        self.expire(now);
        self.pump(now);
    }

    fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.poll_running(cx, now);
        self.authorization.poll(cx, now);
        self.pump(now);
    }

    fn poll_transmit(&mut self) -> Option<ClientTransmit> {
        self.authorization.poll_transmit(&mut self.machine)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = [self.machine.poll_timeout(), self.timers.next()];
        own.into_iter().chain([self.authorization.poll_timeout()]).flatten().min()
    }

    fn is_congested(&self) -> bool {
        self.machine.is_congested()
    }

    fn is_drained(&self) -> bool {
        self.machine.is_drained() && self.authorization.is_drained()
    }

    fn is_closed(&self) -> bool {
        self.machine.is_closed()
    }

    fn assert_consistent(&self) {
        self.assert_tables_consistent();
    }

    fn close(&mut self, now: Instant) {
        self.machine.close(now);
        self.pump(now);
    }
}
