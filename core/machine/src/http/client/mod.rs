//! The client side of Streamable HTTP and of its predecessor HTTP+SSE.

mod bodies;
mod call_fields;
mod closing;
mod consistency;
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

use call_fields::CallFields;
use closing::CloseState;
use exchanges::Exchanges;
use listening::Listening;
use mcp_sansio_sync::Arc;
use opening::LegacyProbe;
use queue::Queue;
use session::LegacySession;
use tools::Tools;

use crate::binding::Binding;
use crate::peer::machine::machine;
use crate::peer::{self, Applied, ClientCommand, ClientMachine, CommandError, Event};
use crate::{Attempts, Era, Instant};

use super::{ExchangeId, Location};

pub use head::IncomingResponse;
pub use limits::ClientLimits;
pub use options::{HttpClientOptions, LostSession};
pub use transmit::{ClientTransmit, ExchangeFailure, OutgoingRequest};
pub(crate) use transmit::{SESSION_ID, is_own_field};

/// The client side of one connection over HTTP, as a state machine over exchanges.
///
/// It is a [`peer::Client`] that speaks HTTP. It opens the connection automatically, detects the
/// era and the transport of the server, and reports [`Event::Opened`], or [`Event::Closed`] with
/// the reason. Calls can be made from then on; every call ends with exactly one [`Event::Ended`].
///
/// # Driving it
///
/// * Push the inputs of the network: [`handle_response`](Self::handle_response) once for each
///   exchange, then [`handle_body`](Self::handle_body) for each piece of its body and
///   [`handle_body_end`](Self::handle_body_end). Call
///   [`handle_exchange_failed`](Self::handle_exchange_failed) at any time in place of the remaining
///   inputs, and [`handle_timeout`](Self::handle_timeout) when the deadline is reached. Inputs for
///   an exchange that has ended are ignored.
/// * Push the commands of the application: the methods of [`ClientMachine`].
/// * After any of these, poll until each returns `None`: [`poll_event`](Self::poll_event);
///   [`poll_transmit`](Self::poll_transmit), whose requests must all run concurrently, without
///   waiting for the responses of others; [`poll_timeout`](Self::poll_timeout) for the next
///   deadline.
/// * `now` is the current time, not the deadline that fired.
/// * The driver does not follow redirects, repeat requests or decode events. Anything that it adds
///   to a request, such as a token, and any response that it handles alone, such as one that asks
///   for a token, is not passed to this machine. While it obtains a token, it must
///   [pause](Self::pause) the request, so that the time of the user does not count as time of the
///   server.
///
/// A legacy server may end the session at any time. The client then opens another session and
/// reports [`Event::Opened`] again. State that the server kept for the old session is lost; the
/// client restores resource subscriptions and the log level.
///
/// The machine does not block, does not panic on input from the server, and does work in proportion
/// to its input.
///
/// ```
/// use mcp_sansio::Instant;
/// use mcp_sansio::http::{Client, ClientTransmit, HttpClientOptions, Location};
/// use mcp_sansio::peer::ClientOptions;
/// use mcp_sansio::protocol::Implementation;
///
/// let url = Location::parse("https://mcp.example.com/mcp")?;
/// let options = ClientOptions::new(Implementation::new("demo", "1.0.0"));
/// let mut client = Client::new(options, HttpClientOptions::new(url), 42, Instant::ZERO);
/// let Some(ClientTransmit::Send(request)) = client.poll_transmit() else { panic!() };
/// assert_eq!((request.method, request.url().as_str()), ("POST", "https://mcp.example.com/mcp"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client {
    peer: peer::Client,
    url: Arc<Location>,
    options: HttpClientOptions,
    /// Generates the seeds of attempts.
    seed: u64,
    exchanges: Exchanges,
    queue: Queue,
    transmits: VecDeque<ClientTransmit>,
    events: VecDeque<Event<'static>>,
    transport: Transport,
    send_state: SendState,
    legacy: LegacySession,
    listening: Listening,
    tools: Tools,
    /// The header fields of single calls.
    call_fields: CallFields,
    close_state: CloseState,
}

/// The transport in use.
#[derive(Debug)]
enum Transport {
    /// Streamable HTTP, as far as is known.
    Streamable,
    /// The handshake was refused; the server may use HTTP+SSE.
    Probing(Box<LegacyProbe>),
    /// HTTP+SSE, with the URL to which messages are posted.
    HttpSse(Arc<Location>),
}

/// The messages that may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendState {
    /// Only those that open the connection.
    Opening,
    /// None, until the server has accepted `notifications/initialized`.
    Acknowledging,
    /// All except calls, until the listening stream is open or this time is reached.
    Listening(Instant),
    /// All.
    Open,
}

impl Client {
    /// Creates a client that opens its connection: the first request is ready to be sent.
    ///
    /// `seed` keys the hash tables for names chosen by the server, and adds jitter to reconnection
    /// attempts. Draw it at random.
    #[must_use]
    pub fn new(
        peer: peer::ClientOptions,
        http: HttpClientOptions,
        seed: u64,
        now: Instant,
    ) -> Self {
        let http = http.identified_as(&peer.role.identity.implementation);
        let peer = peer.reaching(http.url.host(), http.url.port());
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
            call_fields: CallFields::default(),
            close_state: CloseState::default(),
        };
        client.pump(now);
        client
    }

    // ------------------------------------------------------------------ from the network

    /// Handles the final response head of an exchange. Skip informational responses (1xx).
    pub fn handle_response(
        &mut self,
        exchange: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) {
        self.receive_head(exchange, head, now);
        self.pump(now);
    }

    /// Handles a piece of a response body.
    pub fn handle_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant) {
        self.receive_body(exchange, bytes, now);
        self.pump(now);
    }

    /// Handles the complete end of a response body. A truncated body is a failed exchange.
    pub fn handle_body_end(&mut self, exchange: ExchangeId, now: Instant) {
        self.receive_end(exchange, now);
        self.pump(now);
    }

    /// Reports that an exchange failed before the end of its response.
    pub fn handle_exchange_failed(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    ) {
        self.refuse(exchange, failure.into(), now);
    }

    /// Handles the timeouts that are due at `now`. Extra calls have no effect.
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

    /// Executes a command of the application.
    ///
    /// # Errors
    ///
    /// See [`CommandError`].
    pub fn apply(
        &mut self,
        command: ClientCommand<'_>,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        let (command, fields) = command.split_fields();
        let applied = self.peer.apply(command, now);
        if let (Some(fields), Ok(Applied::Started(call))) = (fields, &applied) {
            // Before the request is taken from the peer.
            self.call_fields.insert(*call, fields);
        }
        self.pump(now);
        applied
    }

    // ------------------------------------------------------------------ outputs

    /// Returns the next action for the driver, or `None` if the queue is empty.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<ClientTransmit> {
        self.transmits.pop_front()
    }

    /// Returns the next event, in the order in which they happened.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        self.events.pop_front()
    }

    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) must be called. It
    /// may change with every call of another method.
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

    /// Returns the server URL and the HTTP options.
    #[must_use]
    pub const fn options(&self) -> &HttpClientOptions {
        &self.options
    }

    /// Returns whether the queued responses and notifications exceed
    /// [`transmit_bytes_max`](crate::peer::Limits::transmit_bytes_max). If so, stop reading bodies
    /// until the server has accepted some of them, but continue to read response heads.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.queue.control_bytes() > self.peer.transmit_bytes_max()
    }

    /// Returns whether the connection is closed.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.peer.is_closed()
    }

    /// Returns whether the connection is closed and nothing is left to do.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.peer.is_closed() && self.transmits.is_empty() && self.exchanges.len() == 0
    }

    /// Returns the negotiated session, once the connection is open.
    #[must_use]
    pub const fn session(&self) -> Option<&peer::ClientSession> {
        self.peer.session()
    }

    /// Returns the detected era of the server. Store it for the next connection to the same origin:
    /// see [`peer::ClientOptions::known_era`].
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-018]
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.peer.era()
    }

    fn attempts(&mut self) -> Attempts {
        // Each stream has another seed, so that streams that break together do not reconnect
        // together.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Attempts::new(self.options.backoff, self.seed)
    }
}

machine!(Client, ClientCommand);

impl ClientMachine for Client {
    fn session(&self) -> Option<&peer::ClientSession> {
        self.session()
    }

    fn has_call(&self, call: peer::CallHandle) -> bool {
        self.peer.has_call(call)
    }

    fn catch_panics(&mut self, guard: crate::PanicGuard) {
        self.peer.catch_panics(guard);
    }

    fn observation_of_input(&self, input: peer::InputHandle) -> Option<Arc<dyn peer::Observation>> {
        self.peer.observation_of_input(input)
    }

    fn observation_of(&self, request: peer::RequestHandle) -> Option<Arc<dyn peer::Observation>> {
        ClientMachine::observation_of(&self.peer, request)
    }
}
