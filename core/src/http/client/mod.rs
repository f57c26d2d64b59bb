//! The client's side of Streamable HTTP, and of the HTTP+SSE that came before it.

mod head;
mod limits;
mod options;
mod transmit;
mod verbs;

use alloc::collections::VecDeque;

use crate::peer::{self, Event};
use crate::{Era, Instant};

use super::ExchangeId;

pub use head::ResponseHeadIn;
pub use limits::ClientLimits;
pub use options::{ClientOptions, LostSession};
pub use transmit::{ExchangeFailure, OutgoingRequest, Transmit};

/// The client's side of one connection over HTTP, as a state machine over exchanges.
#[derive(Debug)]
pub struct Client {
    peer: peer::Client,
    options: ClientOptions,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event<'static>>,
}

impl Client {
    /// A client that opens its connection: the first request waits to be sent.
    ///
    /// `seed` keys the hash tables of what the server names and spreads attempts to reach it again
    /// over time: draw it at random.
    #[must_use]
    pub fn new(peer: peer::ClientOptions, http: ClientOptions, seed: u64, now: Instant) -> Self {
        Self {
            peer: peer::Client::of_posts(peer, seed, now),
            options: http,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Takes the head of the response of an exchange.
    pub fn handle_response(
        &mut self,
        exchange: ExchangeId,
        head: &ResponseHeadIn<'_>,
        now: Instant,
    ) {
        let _ = (exchange, head, &self.options);
        self.settle(now);
    }

    /// Takes a piece of the body of a response.
    pub fn handle_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant) {
        let _ = (exchange, bytes);
        self.settle(now);
    }

    /// Takes the end of the body of a response.
    pub fn handle_body_end(&mut self, exchange: ExchangeId, now: Instant) {
        let _ = exchange;
        self.settle(now);
    }

    /// Takes the news that an exchange came to no response, or to no end of it.
    pub fn handle_exchange_failed(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    ) {
        let _ = (exchange, failure);
        self.settle(now);
    }

    /// Does what is due at `now`. Extra calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.peer.handle_timeout(now);
        self.settle(now);
    }

    /// What to do next; `None` when there is nothing.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// What happened.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.peer.poll_timeout()
    }

    /// Whether the connection is over.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.peer.is_closed()
    }

    /// Whether the connection is closed and nothing is left to do.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.peer.is_closed() && self.transmits.is_empty()
    }

    /// What was agreed on, once the connection is open.
    #[must_use]
    pub const fn session(&self) -> Option<&peer::client::Session> {
        self.peer.session()
    }

    /// The era that the server turned out to be of; worth remembering for the next connection to
    /// the same origin: see [`peer::ClientOptions::known_era`].
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.peer.era()
    }

    fn settle(&mut self, _now: Instant) {
        while let Some(event) = self.peer.poll_event() {
            self.events.push_back(event);
        }
    }
}
