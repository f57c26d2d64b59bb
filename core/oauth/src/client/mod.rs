//! The client's side of authorization, as a machine between an HTTP client and the network.

mod action;
pub(crate) mod authentication;
pub(crate) mod challenge;
mod credential;
mod exchanges;
mod flow;
pub(crate) mod form;
pub(crate) mod metadata;
mod options;
pub(crate) mod proof;
pub(crate) mod registration;
pub(crate) mod response;
pub(crate) mod scopes;
pub(crate) mod token;
mod tokens;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use bytestring::ByteString;
use mcp_sansio::Instant;
use mcp_sansio::http::{ClientTransmit, ExchangeFailure, ExchangeId, IncomingResponse, Location};
use mcp_sansio_sync::Arc;

use action::ActionQueue;
use credential::StoredClient;
use exchanges::{DEFAULT_USER_AGENT, Exchange, Exchanges, Fetch};
use flow::{Flow, Goal};
use options::GrantFlow;
use proof::Nonces;
use response::Entropy;
use tokens::{Clock, Generations, Operations, RetryableRequest, Tokens, WaitingRequests};

pub use action::{
    ActionFailure, ActionId, AssertionRequest, AuthorizationAction, AuthorizationEvent,
    AuthorizationFailure, AuthorizationRequest, Credential, CredentialKey, SigningKey,
    SigningRequest, WaitingFor,
};
pub use options::{
    ApplicationType, AuthorizationLimits, AuthorizationOptions, ClientMetadata, ClientSecret,
    ClientTimeouts, DpopKey, IdentityProvider, InvalidOption, RegisteredClient,
};
pub(crate) use tokens::Generation;

/// The recipient of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The HTTP client: pass the response on to it under this id.
    Forward(ExchangeId),
    /// The authorization, which has handled the response.
    Consumed,
}

/// The client's side of authorization for one MCP server, as a machine between its HTTP client and
/// the network. It adds tokens to requests, handles responses with 401 and 403, gets tokens and
/// renews them.
///
/// # Driving it
///
/// * Pass every output of [`http::Client::poll_transmit`](mcp_sansio::http::Client::poll_transmit)
///   to [`handle_transmit`](Self::handle_transmit), and perform the outputs of this machine's
///   [`poll_transmit`](Self::poll_transmit) on the network. The exchanges of the two have separate
///   ids, both small numbers: do not mix them.
/// * Pass the input of an exchange to this machine first. On [`Routing::Forward`] pass it on to the
///   HTTP client under the id given there; on [`Routing::Consumed`] do not pass it on.
/// * After each of these calls, poll until empty: first [`poll_action`](Self::poll_action), so that
///   a token is stored before it is used, then [`poll_event`](Self::poll_event) and
///   `poll_transmit`, and [`poll_timeout`](Self::poll_timeout) for the next deadline.
/// * Between [`AuthorizationEvent::Paused`] and [`AuthorizationEvent::Resumed`] pause the HTTP client's timeout of the
///   request: the user may need time to sign in.
///
/// It loads the stored tokens before the first request is sent, and again before each renewal, as
/// another process of the application may have renewed them. It locks them during the renewal, as
/// a refresh token may be valid once. It starts an authorization when the
/// server requires one. Only one is in progress at a time, and requests wait for it. The end of a
/// session (DELETE) never waits, and is not sent again.
///
/// No method blocks, panics because of a server's input, or needs time out of proportion to its
/// input.
///
/// ```
/// use mcp_sansio::Instant;
/// use mcp_sansio::http::{Client, ClientTransmit, HttpClientOptions, Location};
/// use mcp_sansio::peer::ClientOptions;
/// use mcp_sansio::protocol::Implementation;
/// use mcp_sansio_oauth::client::{AuthorizationAction, AuthorizationClient, AuthorizationOptions};
///
/// let now = Instant::ZERO;
/// let url = Location::parse("https://mcp.example.com/mcp")?;
/// let options = ClientOptions::new(Implementation::new("demo", "1.0.0"));
/// let mut http = Client::new(options, HttpClientOptions::new(url.clone()), 42, now);
/// let options = AuthorizationOptions::code("http://127.0.0.1:8080/callback")?;
/// // 32 random bytes, and the Unix time.
/// let mut auth = AuthorizationClient::new(options, url, [7; 32], 1_785_000_000, now);
///
/// while let Some(transmit) = http.poll_transmit() {
///     auth.handle_transmit(transmit, now);
/// }
/// // Nothing is sent before the stored tokens are loaded.
/// let Some(AuthorizationAction::Load(action, _)) = auth.poll_action() else { panic!() };
/// auth.handle_loaded(action, Ok(None), now);
/// # while let Some(AuthorizationAction::Load(action, _)) = auth.poll_action() {
/// #     auth.handle_loaded(action, Ok(None), now);
/// # }
/// let Some(ClientTransmit::Send(request)) = auth.poll_transmit() else { panic!() };
/// assert_eq!(request.url().as_str(), "https://mcp.example.com/mcp");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AuthorizationClient {
    options: AuthorizationOptions,
    server: Location,
    entropy: Entropy,
    clock: Clock,
    exchanges: Exchanges,
    waiting: WaitingRequests,
    operations: Operations,
    nonces: Nonces,
    flow: Option<Box<Flow>>,
    fetch: Option<Fetch>,
    /// The name of the client in its own requests.
    user_agent: ByteString,
    /// Whether the server has ever accepted a message, and a request for its optional stream.
    posts_accepted: bool,
    streams_accepted: bool,
    /// Whether the stored tokens were requested.
    loaded: bool,
    tokens: Option<Tokens>,
    /// The number of tokens so far.
    token_count: u64,
    /// The tokens so far, in the order in which they replaced each other.
    generations: Generations,
    /// The earliest time of the next renewal, after a failed one.
    renewal_not_before: Instant,
    /// The dynamic registration at the authorization server that was used last.
    client: Option<StoredClient>,
    /// The issuers of the registered clients, in their order.
    bound: Vec<Option<String>>,
    actions: ActionQueue,
    transmits: VecDeque<ClientTransmit>,
    events: VecDeque<AuthorizationEvent>,
    closed: bool,
}

impl AuthorizationClient {
    /// Creates a client for the MCP server at `server`. `entropy` is 32 bytes from the operating
    /// system: all secrets are derived from them, so each client needs its own. `unix_time` is the
    /// seconds since 1970.
    #[must_use]
    pub fn new(
        options: AuthorizationOptions,
        server: Location,
        entropy: [u8; 32],
        unix_time: u64,
        now: Instant,
    ) -> Self {
        let bound = options.registered.iter().map(|it| it.issuer.clone()).collect();
        Self {
            options,
            server,
            entropy: Entropy::new(entropy),
            clock: Clock::new(unix_time, now),
            exchanges: Exchanges::new(),
            waiting: WaitingRequests::default(),
            operations: Operations::default(),
            nonces: Nonces::new(),
            flow: None,
            fetch: None,
            user_agent: ByteString::from_static(DEFAULT_USER_AGENT),
            posts_accepted: false,
            streams_accepted: false,
            loaded: false,
            tokens: None,
            token_count: 0,
            generations: Generations::default(),
            renewal_not_before: Instant::ZERO,
            client: None,
            bound,
            actions: ActionQueue::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            closed: false,
        }
    }

    // ------------------------------------------------------------------ from the HTTP client

    /// Handles an output of the HTTP client.
    // MCP 2026-07-28 basic/authorization/index#protocol-requirements [AUTHC-002]
    pub fn handle_transmit(&mut self, transmit: ClientTransmit, now: Instant) {
        match transmit {
            ClientTransmit::Send(request) => {
                self.route(Box::new(RetryableRequest::new(request)), now)
            }
            ClientTransmit::Abort(inner) => self.abort_request(inner),
        }
    }

    // ------------------------------------------------------------------ from the network

    /// Handles the head of a response; of several heads only the final one.
    #[must_use]
    pub fn handle_response(
        &mut self,
        exchange: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) -> Routing {
        match self.exchanges.get_mut(exchange) {
            Some(Exchange::Forwarded { inner, held }) => {
                let inner = *inner;
                let held = if head.status().0 < 200 { None } else { held.take() };
                if held.is_some_and(|held| self.judge(held, head, now)) {
                    self.drain(exchange, now);
                    return Routing::Consumed;
                }
                Routing::Forward(inner)
            }
            Some(Exchange::Fetch) => {
                self.fetch_answered(exchange, head, now);
                Routing::Consumed
            }
            Some(Exchange::Draining { .. }) | None => Routing::Consumed,
        }
    }

    /// Handles a piece of a response body.
    #[must_use]
    pub fn handle_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant) -> Routing {
        match self.exchanges.get_mut(exchange) {
            Some(Exchange::Forwarded { inner, .. }) => return Routing::Forward(*inner),
            Some(Exchange::Fetch) => self.fetch_body(exchange, bytes, now),
            Some(Exchange::Draining { left, .. }) => match left.checked_sub(bytes.len()) {
                Some(rest) => *left = rest,
                None => self.abort_exchange(exchange),
            },
            None => {}
        }
        Routing::Consumed
    }

    /// Handles the end of a response body.
    #[must_use]
    pub fn handle_body_end(&mut self, exchange: ExchangeId, now: Instant) -> Routing {
        match self.exchanges.remove(exchange) {
            Some(Exchange::Forwarded { inner, .. }) => return Routing::Forward(inner),
            Some(Exchange::Fetch) => self.fetch_ended(exchange, now),
            Some(Exchange::Draining { .. }) | None => {}
        }
        Routing::Consumed
    }

    /// Handles the failure of an exchange.
    #[must_use]
    pub fn handle_exchange_failed(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    ) -> Routing {
        match self.exchanges.remove(exchange) {
            Some(Exchange::Forwarded { inner, .. }) => return Routing::Forward(inner),
            Some(Exchange::Fetch) => self.fetch_broken(exchange, failure, now),
            Some(Exchange::Draining { .. }) | None => {}
        }
        Routing::Consumed
    }

    // ------------------------------------------------------------------ from the application

    /// Updates the wall clock, which `new` set first. Call it now and then: the monotonic clock
    /// stops while a computer sleeps.
    pub const fn handle_unix_time(&mut self, seconds: u64, now: Instant) {
        self.clock = Clock::new(seconds, now);
    }

    /// Handles the redirect of the user: a URL, or the target of the HTTP request. Returns `false`
    /// for a redirect that answers another request: ignore it and keep waiting.
    pub fn handle_redirect(
        &mut self,
        action: ActionId,
        redirect: Result<&str, ActionFailure>,
        now: Instant,
    ) -> bool {
        self.user_came_back(action, redirect, now)
    }

    /// Handles the signature of the input: the raw bytes of a JSON Web Signature, before base64.
    pub fn handle_signature(
        &mut self,
        action: ActionId,
        signature: Result<&[u8], ActionFailure>,
        now: Instant,
    ) {
        if self.waiting.proves(action) {
            self.request_signed(action, signature, now);
        } else {
            self.flow_signed(action, signature, now);
        }
    }

    /// Handles the assertion.
    pub fn handle_assertion(
        &mut self,
        action: ActionId,
        assertion: Result<&str, ActionFailure>,
        now: Instant,
    ) {
        self.asserted(action, assertion, now);
    }

    /// Handles a loaded credential. An unreadable one counts as missing, because a token can be
    /// requested again.
    pub fn handle_loaded(
        &mut self,
        action: ActionId,
        credential: Result<Option<Credential>, ActionFailure>,
        now: Instant,
    ) {
        self.flow_loaded(action, credential, now);
    }

    /// Starts an authorization without waiting for the server to require one. It ends with
    /// [`AuthorizationEvent::Authorized`], at once if a token was stored, or with
    /// [`AuthorizationEvent::Failed`]. Does nothing while one is in progress, and after
    /// [`close`](Self::close).
    pub fn authorize(&mut self, now: Instant) {
        if self.flow.is_some() || self.closed {
            return;
        }
        let goal = match self.loaded {
            false => Goal::Load { then: true },
            true => Goal::Authorize { may_renew: false },
        };
        self.start(goal, None, now);
    }

    /// Drops the token and removes it from the store: the user signs out. An authorization in
    /// progress is cancelled. The next 401 starts a new one.
    pub fn forget(&mut self, now: Instant) {
        self.stop();
        self.drop_tokens();
        self.loaded = true;
        self.operations = Operations::default();
        while let Some(held) = self.take_unproven() {
            self.send_authorized(held, now);
        }
    }

    /// Cancels an authorization in progress and refuses the waiting requests. No further
    /// authorization is started; later requests carry the current token.
    pub fn close(&mut self) {
        self.closed = true;
        self.stop();
        let failure = Arc::new(AuthorizationFailure::Closed);
        while let Some(held) = self.take_unproven() {
            self.refuse(held.inner(), Arc::clone(&failure));
        }
        while let Some(held) = self.waiting.take_for_token(u64::MAX) {
            self.refuse(held.inner(), Arc::clone(&failure));
        }
    }

    // ------------------------------------------------------------------ the clock, and outputs

    /// Fires the timers that are due. Extra calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(exchange) = self.exchanges.overdue(now) {
            self.abort_exchange(exchange);
        }
        while let Some(action) = self.waiting.overdue(now) {
            self.proof_overdue(action);
        }
        if self.flow_deadline().is_some_and(|at| at <= now) {
            self.flow_timed_out(now);
        }
    }

    /// Returns the next network operation: a request of the HTTP client, with a token, or an
    /// exchange of the authorization.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<ClientTransmit> {
        self.transmits.pop_front()
    }

    /// Returns the next action for the application.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<AuthorizationAction> {
        self.actions.pop()
    }

    /// Returns the next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<AuthorizationEvent> {
        self.events.pop_front()
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout), if no input comes earlier.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due =
            [self.exchanges.next_deadline(), self.waiting.next_deadline(), self.flow_deadline()];
        due.into_iter().flatten().min()
    }

    /// Reads the rest of a response that is not needed, within limits, because aborting it costs a
    /// connection.
    fn drain(&mut self, exchange: ExchangeId, now: Instant) {
        if self.exchanges.draining() >= self.options.limits.refusals_max {
            return self.abort_exchange(exchange);
        }
        let left = self.options.limits.refusal_bytes_max;
        let until = now + self.options.timeouts.refusal;
        if let Some(place) = self.exchanges.get_mut(exchange) {
            *place = Exchange::Draining { left, until };
        }
    }

    /// Returns the number of the current token, counted from 1, or zero without a token. A renewed
    /// token has another number.
    #[must_use]
    pub const fn token_number(&self) -> u64 {
        match &self.tokens {
            Some(tokens) => tokens.number,
            None => 0,
        }
    }
}
