//! The client's side of authorization, as a machine between an HTTP client and the network.

mod action;
mod actions;
mod clock;
mod event;
mod exchanges;
mod failure;
mod fetch;
mod flow;
mod forwarding;
mod limits;
mod operations;
mod options;
mod proof;
mod tokens;
mod waiting;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use actions::ActionQueue;
use clock::Clock;
use exchanges::{Exchange, Exchanges};
use fetch::Fetch;
use flow::{Flow, Goal};
use mcp_sansio::Instant;
use mcp_sansio::http::client::Transmit;
use mcp_sansio::http::{ExchangeFailure, ExchangeId, IncomingResponse, Location};
use mcp_sansio_sync::Arc;
use operations::Operations;
use tokens::Tokens;
use waiting::{RetryableRequest, WaitingRequests};

use crate::credential::StoredClient;
use crate::dpop::Nonces;
use crate::entropy::Entropy;

pub use action::{
    Action, ActionFailure, ActionId, AssertionRequest, AuthorizationRequest, Credential,
    CredentialKey, SigningKey, SigningRequest,
};
pub use event::Event;
pub use failure::{AuthorizationFailure, WaitingFor};
pub use limits::{ClientLimits, ClientTimeouts};
pub use options::{
    ApplicationType, ClientMetadata, ClientOptions, ClientSecret, DpopKey, GrantFlow,
    IdentityProvider, InvalidOption, RegisteredClient,
};

/// Whose a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The HTTP client's: hand it on as this exchange, its name for it.
    Forward(ExchangeId),
    /// The authorization's: it has been dealt with.
    Consumed,
}

/// The client's side of authorization for one MCP server, as a machine between its HTTP client and
/// the network: it adds tokens to what leaves, takes 401 and 403 out of what comes, gets tokens
/// and renews them.
///
/// # Driving it
///
/// * Everything that [`http::Client::poll_transmit`](mcp_sansio::http::Client::poll_transmit) yields goes
///   to [`handle_transmit`](Self::handle_transmit), and what is to be done on the network comes from
///   [`poll_transmit`](Self::poll_transmit) here. Its exchanges have names of their own, small ones
///   as those of the HTTP client: do not mix them.
/// * What comes of an exchange is handed in here first. [`Routing::Forward`] has the name by which
///   the HTTP client knows it, to be handed on to it; of [`Routing::Consumed`] it must not hear.
/// * After any of these, pull until dry: first [`poll_action`](Self::poll_action), so that a token is
///   kept before it is used, then [`poll_event`](Self::poll_event) and `poll_transmit`, and
///   [`poll_timeout`](Self::poll_timeout) to know when to come back.
/// * Between [`Event::Paused`] and [`Event::Resumed`] the time that the HTTP client gives a request
///   stands still: a user may be looking for their glasses.
///
/// Before its first request leaves it asks for what was kept, and again before it renews a token, as
/// another run of the application may have been faster. It starts an authorization when the
/// server asks for one; there is one at a time, and requests that come meanwhile wait for it. The
/// end of a session (DELETE) never waits, and is not sent again.
///
/// Nothing here blocks, panics because of a server, or does work out of proportion to its input.
#[derive(Debug)]
pub struct Client {
    options: ClientOptions,
    server: Location,
    entropy: Entropy,
    clock: Clock,
    exchanges: Exchanges,
    waiting: WaitingRequests,
    operations: Operations,
    nonces: Nonces,
    flow: Option<Box<Flow>>,
    fetch: Option<Fetch>,
    /// What was kept has been asked for.
    loaded: bool,
    tokens: Option<Tokens>,
    /// How many tokens there were.
    token_count: u64,
    /// A renewal came to nothing a moment ago.
    renewal_not_before: Instant,
    /// What the client is registered as, at the authorization server that it registered with last.
    client: Option<StoredClient>,
    /// The issuers of the registered clients, in their order.
    bound: Vec<Option<String>>,
    actions: ActionQueue,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    closed: bool,
}

impl Client {
    /// For the MCP server at `server`. `entropy` is 32 bytes of the operating system's: all secrets
    /// come from it, so it must be another one each time. `unix_time`: seconds since 1970.
    #[must_use]
    pub fn new(
        options: ClientOptions,
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
            loaded: false,
            tokens: None,
            token_count: 0,
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

    /// Takes what the HTTP client wants done.
    // MCP 2026-07-28 basic/authorization/index#protocol-requirements [AUTHC-002]
    pub fn handle_transmit(&mut self, transmit: Transmit, now: Instant) {
        match transmit {
            Transmit::Send(request) => self.route(Box::new(RetryableRequest::new(request)), now),
            Transmit::Abort(inner) => self.abort_request(inner),
        }
    }

    // ------------------------------------------------------------------ from the network

    /// Takes the head of a response, the last one if there are provisional ones.
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

    /// Takes a piece of a body.
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

    /// Takes the end of a body.
    #[must_use]
    pub fn handle_body_end(&mut self, exchange: ExchangeId, now: Instant) -> Routing {
        match self.exchanges.remove(exchange) {
            Some(Exchange::Forwarded { inner, .. }) => return Routing::Forward(inner),
            Some(Exchange::Fetch) => self.fetch_ended(exchange, now),
            Some(Exchange::Draining { .. }) | None => {}
        }
        Routing::Consumed
    }

    /// Takes the news that an exchange came to nothing.
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

    /// Says what time it is for the world; `new` does it for the first time. To be called now and
    /// then: a computer that sleeps stops the monotonic clock.
    pub const fn handle_unix_time(&mut self, seconds: u64, now: Instant) {
        self.clock = Clock::new(seconds, now);
    }

    /// Where the user came back to: a URL, or the target of that request. A redirect that answers
    /// another request is passed over (`false`): go on waiting.
    pub fn handle_redirect(
        &mut self,
        action: ActionId,
        redirect: Result<&str, ActionFailure>,
        now: Instant,
    ) -> bool {
        self.user_came_back(action, redirect, now)
    }

    /// The signature over the input, raw as a JSON Web Signature has it before base64.
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

    /// The assertion.
    pub fn handle_assertion(
        &mut self,
        action: ActionId,
        assertion: Result<&str, ActionFailure>,
        now: Instant,
    ) {
        self.asserted(action, assertion, now);
    }

    /// What was kept. What cannot be read counts as nothing: there are other ways to a token.
    pub fn handle_loaded(
        &mut self,
        action: ActionId,
        credential: Result<Option<Credential>, ActionFailure>,
        now: Instant,
    ) {
        self.flow_loaded(action, credential, now);
    }

    /// Starts an authorization without waiting for the server to ask for one. It ends with
    /// [`Event::Authorized`], at once if a token was kept, or with [`Event::Failed`]. While one is
    /// under way, and after [`close`](Self::close), this does nothing.
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

    /// Forgets the token, and has what is kept of it removed: the user signs out. What is under way
    /// is given up. The next 401 starts over.
    pub fn forget(&mut self, now: Instant) {
        self.stop();
        self.drop_tokens();
        self.loaded = true;
        self.operations = Operations::default();
        while let Some(held) = self.take_unproven() {
            self.send_authorized(held, now);
        }
    }

    /// Gives up what is under way: requests that wait are refused. From now on there is no further
    /// authorization; what leaves has the token that there is.
    pub fn close(&mut self) {
        self.closed = true;
        self.stop();
        let failure = Arc::new(AuthorizationFailure::Closed);
        while let Some(held) = self.take_unproven() {
            self.refuse(held.inner(), Arc::clone(&failure));
        }
    }

    // ------------------------------------------------------------------ the clock, and outputs

    /// Does what is due. Extra calls do nothing.
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

    /// What to do on the network next: what the HTTP client wanted, with a token, or an exchange of
    /// the authorization's own.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// What to ask of the application next.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop()
    }

    /// What happened.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due =
            [self.exchanges.next_deadline(), self.waiting.next_deadline(), self.flow_deadline()];
        due.into_iter().flatten().min()
    }

    /// Nobody needs what is still to come of an exchange: it may come, within bounds, as cutting it
    /// off costs a connection.
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

    fn token_number(&self) -> u64 {
        self.tokens.as_ref().map_or(0, |tokens| tokens.number)
    }
}
