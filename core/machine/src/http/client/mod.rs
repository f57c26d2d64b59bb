//! The client's side of Streamable HTTP, and of the HTTP+SSE that came before it.

mod bodies;
mod closing;
mod dispatch;
mod exchanges;
mod head;
mod limits;
mod listening;
mod message;
mod opening;
mod options;
mod pause;
mod queue;
mod responses;
mod session;
mod streams;
mod tools;
mod transmit;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use closing::CloseState;
use exchanges::Exchanges;
use listening::Listening;
use mcp_sansio_sync::Arc;
use opening::LegacyProbe;
use queue::Queue;
use session::LegacySession;
use tools::Tools;

use crate::binding::Binding;
use crate::peer::client::client_methods;
use crate::peer::machine::machine;
use crate::peer::{self, Applied, ClientCommand, ClientMachine, CommandError, Event};
use crate::{Era, Instant};

use super::backoff::Attempts;
use super::{ExchangeId, Location};

pub use head::IncomingResponse;
pub use limits::ClientLimits;
pub use options::{ClientOptions, LostSession};
#[cfg(feature = "recording")]
pub(crate) use transmit::SESSION_ID;
pub use transmit::{ExchangeFailure, Field, OutgoingRequest, Transmit};

/// The client's side of one connection over HTTP, as a state machine over exchanges.
///
/// It is a [`peer::Client`] that speaks HTTP: it opens the connection by itself, finding out which
/// era and which transport the server is of, and reports [`Event::Opened`], or [`Event::Closed`]
/// with the reason. Calls can be made from then on; every one ends with exactly one
/// [`Event::Ended`].
///
/// # Driving it
///
/// * Push what comes in: [`handle_response`](Self::handle_response) once for each exchange, then
///   [`handle_body`](Self::handle_body) for each piece of its body as it comes and
///   [`handle_body_end`](Self::handle_body_end), or
///   [`handle_exchange_failed`](Self::handle_exchange_failed) at any time in place of what is still
///   to come; [`handle_timeout`](Self::handle_timeout) when the deadline has come. What concerns an
///   exchange that is over does nothing.
/// * Push what the application wants: [`call`](Self::call), [`cancel`](Self::cancel),
///   [`subscribe`](Self::subscribe), [`answer_input`](Self::answer_input) and the like.
/// * After any of these, pull until dry: [`poll_event`](Self::poll_event);
///   [`poll_transmit`](Self::poll_transmit), whose requests are all to be under way at once: none
///   waits for the response of another one; [`poll_timeout`](Self::poll_timeout) to know when to
///   come back.
/// * `now` is the time it is, not the deadline that fired.
/// * The driver follows no redirects, repeats no requests and decodes no events by itself. What it
///   adds to a request, such as a token, and the responses that it deals with alone, such as one
///   that asks for a token, never come here. While it gets one, the request is to be
///   [paused](Self::pause), so that the time of the user is not taken for that of the server.
///
/// A legacy server may end the session at any time. Then the client opens another one by itself and
/// reports [`Event::Opened`] again: what the server kept for the session that is gone is lost,
/// resources that were subscribed to and the log level are asked for again.
///
/// Nothing here blocks, panics because of the server, or does work out of proportion to its input.
#[derive(Debug)]
pub struct Client {
    peer: peer::Client,
    url: Arc<Location>,
    options: ClientOptions,
    /// Where the seeds for the attempts come from.
    seed: u64,
    exchanges: Exchanges,
    queue: Queue,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event<'static>>,
    transport: Transport,
    send_state: SendState,
    legacy: LegacySession,
    listening: Listening,
    tools: Tools,
    close_state: CloseState,
}

/// Which transport is used.
#[derive(Debug)]
enum Transport {
    /// Streamable HTTP, as far as is known.
    Streamable,
    /// The handshake was refused; the server may be of the old transport.
    Probing(Box<LegacyProbe>),
    /// HTTP+SSE, with the URL that messages are sent to.
    HttpSse(Arc<Location>),
}

/// Which messages may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendState {
    /// Those that open the connection.
    Opening,
    /// None until the server has `notifications/initialized`.
    Acknowledging,
    /// All but calls, until the listening stream stands or this time has come.
    Listening(Instant),
    /// All.
    Open,
}

impl Client {
    /// A client that opens its connection: the first request waits to be sent.
    ///
    /// `seed` keys the hash tables of what the server names and spreads attempts to reach it again
    /// over time: draw it at random.
    #[must_use]
    pub fn new(peer: peer::ClientOptions, http: ClientOptions, seed: u64, now: Instant) -> Self {
        let mut client = Self {
            peer: peer::Client::with_binding(peer, Binding::ChannelPerRequest, seed, now),
            url: Arc::new(http.url.clone()),
            options: http,
            seed,
            exchanges: Exchanges::new(),
            queue: Queue::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            transport: Transport::Streamable,
            send_state: SendState::Opening,
            legacy: LegacySession::default(),
            listening: Listening::default(),
            tools: Tools::default(),
            close_state: CloseState::default(),
        };
        client.pump(now);
        client
    }

    // ------------------------------------------------------------------ from the network

    /// Takes the head of the response of an exchange, the last one if there are provisional ones.
    pub fn handle_response(
        &mut self,
        exchange: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) {
        self.receive_head(exchange, head, now);
        self.pump(now);
    }

    /// Takes a piece of the body of a response.
    pub fn handle_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant) {
        self.receive_body(exchange, bytes, now);
        self.pump(now);
    }

    /// Takes the end of the body of a response, which came as announced: where a body is cut short
    /// the exchange has failed.
    pub fn handle_body_end(&mut self, exchange: ExchangeId, now: Instant) {
        self.receive_end(exchange, now);
        self.pump(now);
    }

    /// Takes the news that an exchange came to no response, or to no end of it.
    pub fn handle_exchange_failed(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    ) {
        self.refuse(exchange, failure.into(), now);
    }

    /// Does what is due at `now`. Extra calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.peer.handle_timeout(now);
        self.pump(now);
        if self.peer.is_closed() {
            return self.handle_close_timeout(now);
        }
        if let SendState::Listening(until) = self.send_state
            && until <= now
        {
            self.send_state = SendState::Open;
        }
        self.sweep(now);
        self.resume_due(now);
        self.pump(now);
    }

    // ------------------------------------------------------------------ from the application

    /// Carries out a command of the application.
    ///
    /// # Errors
    ///
    /// See [`CommandError`].
    pub fn apply(
        &mut self,
        command: ClientCommand<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        let applied = self.peer.apply(command, now);
        self.pump(now);
        applied
    }

    // ------------------------------------------------------------------ outputs

    /// What to do next; `None` when there is nothing.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// What happened, in the order in which it did.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, if nothing comes before.
    /// May change with every call of another method.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.peer.is_closed() {
            return self.close_state.deadline();
        }
        let send_state = match self.send_state {
            SendState::Listening(until) => Some(until),
            _ => None,
        };
        let due = [self.peer.poll_timeout(), self.exchanges.next_deadline(), send_state];
        due.into_iter().flatten().min()
    }

    /// Where the server is and how the client goes about HTTP.
    #[must_use]
    pub const fn options(&self) -> &ClientOptions {
        &self.options
    }

    /// Whether more answers and notifications wait to be sent than
    /// [`transmit_bytes_max`](crate::peer::Limits::transmit_bytes_max): stop reading bodies until
    /// the server has taken some, but go on with the heads of responses.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.queue.control_bytes() > self.peer.transmit_bytes_max()
    }

    /// Whether the connection is over.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.peer.is_closed()
    }

    /// Whether the connection is closed and nothing is left to do.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.peer.is_closed() && self.transmits.is_empty() && self.exchanges.len() == 0
    }

    /// What was agreed on, once the connection is open.
    #[must_use]
    pub const fn session(&self) -> Option<&peer::client::Session> {
        self.peer.session()
    }

    /// The era that the server turned out to be of; worth remembering for the next connection to
    /// the same origin: see [`peer::ClientOptions::known_era`].
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-018]
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.peer.era()
    }

    fn attempts(&mut self) -> Attempts {
        // Streams that break together come back apart.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Attempts::new(self.options.backoff, self.seed)
    }
}

client_methods!(Client, now);
machine!(Client, ClientCommand);

impl ClientMachine for Client {
    fn session(&self) -> Option<&peer::client::Session> {
        self.session()
    }
}
