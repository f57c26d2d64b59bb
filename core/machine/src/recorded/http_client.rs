use super::{Recordable, Recorded, Tape};
use crate::Instant;
use crate::http::{
    Client, ClientTransmit, ExchangeFailure, ExchangeId, HttpClientOptions, IncomingResponse,
};
use crate::peer::{self, TransportFailure};

/// A call of an HTTP client.
#[allow(unnameable_types, reason = "only the module `recording` reads it")]
#[derive(Debug)]
pub enum HttpClientCall<'a> {
    Response(ExchangeId, &'a IncomingResponse<'a>, Instant),
    Body(ExchangeId, &'a [u8], Instant),
    BodyEnd(ExchangeId, Instant),
    Failed(ExchangeId, &'a TransportFailure, Instant),
    Pause(ExchangeId, Instant),
    Resume(ExchangeId, Instant),
    Transmit(&'a ClientTransmit),
}

impl Recordable for Client {
    type Settings = (peer::ClientOptions, HttpClientOptions, u64, Instant);
    type Call<'a> = HttpClientCall<'a>;
}

impl Recorded<Client> {
    /// Creates a client that records its commands, inputs and outputs on `tape`, if there is one,
    /// from the first one on. See [`Client::new`].
    #[must_use]
    pub fn new(
        peer: peer::ClientOptions,
        http: HttpClientOptions,
        seed: u64,
        now: Instant,
        tape: impl Into<Option<Tape>>,
    ) -> Self {
        let settings = (peer, http, seed, now);
        let recorder = tape.into().and_then(|tape| tape.open::<Client>(&settings));
        let (peer, http, ..) = settings;
        Self { machine: Client::new(peer, http, seed, now), recorder }
    }

    /// See [`Client::handle_response`].
    pub fn handle_response(
        &mut self,
        exchange: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) {
        self.note(HttpClientCall::Response(exchange, head, now));
        self.machine.handle_response(exchange, head, now);
    }

    /// See [`Client::handle_body`].
    pub fn handle_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant) {
        self.note(HttpClientCall::Body(exchange, bytes, now));
        self.machine.handle_body(exchange, bytes, now);
    }

    /// See [`Client::handle_body_end`].
    pub fn handle_body_end(&mut self, exchange: ExchangeId, now: Instant) {
        self.note(HttpClientCall::BodyEnd(exchange, now));
        self.machine.handle_body_end(exchange, now);
    }

    /// See [`Client::handle_exchange_failed`].
    pub fn handle_exchange_failed(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    ) {
        self.refuse(exchange, failure.into(), now);
    }

    /// See [`Client::refuse`].
    pub fn refuse(&mut self, exchange: ExchangeId, failure: TransportFailure, now: Instant) {
        self.note(HttpClientCall::Failed(exchange, &failure, now));
        self.machine.refuse(exchange, failure, now);
    }

    /// See [`Client::pause`].
    pub fn pause(&mut self, exchange: ExchangeId, now: Instant) {
        self.note(HttpClientCall::Pause(exchange, now));
        self.machine.pause(exchange, now);
    }

    /// See [`Client::resume`].
    pub fn resume(&mut self, exchange: ExchangeId, now: Instant) {
        self.note(HttpClientCall::Resume(exchange, now));
        self.machine.resume(exchange, now);
    }

    /// See [`Client::poll_transmit`].
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<ClientTransmit> {
        let transmit = self.machine.poll_transmit()?;
        self.note(HttpClientCall::Transmit(&transmit));
        Some(transmit)
    }
}
