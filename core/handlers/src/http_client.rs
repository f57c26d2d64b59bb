use core::task::Context;

use mcp_sansio::Instant;
use mcp_sansio::http::client::Transmit;
use mcp_sansio::http::{ExchangeFailure, ExchangeId, IncomingResponse};
use mcp_sansio::peer::ClientCommand;

use super::client_endpoint::ClientEndpoint;
use super::machines::HttpClient;
use super::panics::PanicGuard;
use super::threading::{ThreadSafe, Threading};

/// The client's side of one connection over HTTP with its host: see [`HttpEndpoint`].
pub type HttpClientEndpoint<K = ThreadSafe> = ClientEndpoint<K, HttpClient>;

/// The client's side of a connection over HTTP with its application attached: what an adapter
/// drives.
///
/// An adapter performs exchanges and fires timers; it knows no rule of the protocol. Its loop:
///
/// 1. [`poll_handlers`](Self::poll_handlers), so that handlers go on;
/// 2. [`poll_transmit`](Self::poll_transmit) until there is nothing: begin the exchanges that are
///    to be sent, drop those that are to be aborted;
/// 3. wait for the first of: news of any exchange under way, however long the others take (but of
///    no body while [`is_congested`](Self::is_congested)), [`poll_timeout`](Self::poll_timeout),
///    the waker of step 1;
/// 4. push what came, exchange by exchange in this order: [`handle_response`](Self::handle_response)
///    for the head of the response, [`handle_body`](Self::handle_body) for each piece of its body
///    as it comes, [`handle_body_end`](Self::handle_body_end); or
///    [`handle_exchange_failed`](Self::handle_exchange_failed) in place of what does not come any
///    more. [`handle_timeout`](Self::handle_timeout) when the deadline has come. Start again.
///
/// The loop ends when [`is_drained`](Self::is_drained).
pub trait HttpEndpoint {
    /// Runs the application's functions in `guard`:
    /// see [`Endpoint::catch_panics`](super::Endpoint::catch_panics).
    fn catch_panics(&mut self, guard: PanicGuard) {
        let _ = guard;
    }

    /// Takes the head of the response of an exchange.
    fn handle_response(&mut self, exchange: ExchangeId, head: &IncomingResponse<'_>, now: Instant);

    /// Takes a piece of the body of a response, cut where the network has cut it.
    fn handle_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant);

    /// Takes the end of the body of a response. The exchange is over.
    fn handle_body_end(&mut self, exchange: ExchangeId, now: Instant);

    /// Takes the news that an exchange came to no response, or to no end of it. It is over.
    fn handle_exchange_failed(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    );

    /// Does what is due at `now`. Extra calls do nothing.
    fn handle_timeout(&mut self, now: Instant);

    /// Lets handlers go on that can, and takes what the application wants to send. The waker in
    /// `cx` is woken when there is more to do.
    fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant);

    /// What to do next; `None` when there is nothing.
    fn poll_transmit(&mut self) -> Option<Transmit>;

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, if nothing comes before.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Whether so much waits to be sent that no body should be read. Heads of responses should:
    /// they make room.
    fn is_congested(&self) -> bool;

    /// Whether the connection is over and nothing is left to do.
    fn is_drained(&self) -> bool;

    /// Whether the connection is over, though the server may still have to be told.
    fn is_closed(&self) -> bool;

    /// Ends the connection from this side. Go on until it [is drained](Self::is_drained).
    fn close(&mut self, now: Instant);
}

impl<K: Threading> HttpClientEndpoint<K> {
    /// Hands on what the parts have for each other, until none has anything.
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

    fn poll_transmit(&mut self) -> Option<Transmit> {
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

    fn close(&mut self, now: Instant) {
        let _done = self.machine.apply(ClientCommand::Close, now);
        self.pump(now);
    }
}
