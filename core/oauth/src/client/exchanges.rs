use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use mcp_sansio::Instant;
use mcp_sansio::http::{
    ClientTransmit, ExchangeFailure, ExchangeId, Field, IncomingResponse, LOCATION_LENGTH_MAX,
    Location, OutgoingRequest,
};
use mcp_sansio::peer::TransportFailure;
use mcp_sansio_collections::{Key, Slab};
use mcp_sansio_sync::Arc;

use super::flow::Goal;
use super::form;
use super::proof::asks_for_nonce;
use super::token::TokenType;
use super::tokens::{RetryableRequest, WaitReason};
use super::{
    ActionFailure, ActionId, AuthorizationClient, AuthorizationEvent, AuthorizationFailure,
    WaitingFor,
};
use crate::{BearerChallenge, Challenge};

/// The exchanges in progress on the network. They have their own ids: a request that is sent again
/// is a new exchange on the network, but the same exchange for the HTTP client.
#[derive(Debug)]
pub(super) struct Exchanges(Slab<Exchange>);

#[derive(Debug)]
pub(super) enum Exchange {
    /// An exchange of the HTTP client.
    Forwarded {
        /// The HTTP client's id of the exchange.
        inner: ExchangeId,
        /// The request, until the head of the response rules out a retry.
        held: Option<Box<RetryableRequest>>,
    },
    /// The exchange that the flow waits for.
    Fetch,
    /// An exchange whose remaining response is not needed.
    Draining {
        /// The remaining bytes before it is aborted.
        left: usize,
        /// When it is aborted.
        until: Instant,
    },
}

const fn id_of(key: Key) -> ExchangeId {
    ExchangeId::from_number(key.to_number())
}

const fn key_of(id: ExchangeId) -> Key {
    Key::from_number(id.to_number())
}

impl Exchanges {
    pub(super) const fn new() -> Self {
        Self(Slab::new())
    }

    pub(super) fn insert(&mut self, exchange: Exchange) -> ExchangeId {
        id_of(self.0.insert(exchange))
    }

    pub(super) fn get_mut(&mut self, id: ExchangeId) -> Option<&mut Exchange> {
        self.0.get_mut(key_of(id))
    }

    pub(super) fn remove(&mut self, id: ExchangeId) -> Option<Exchange> {
        self.0.remove(key_of(id))
    }

    /// Returns the exchange by its id at the HTTP client. Linear in the exchanges in progress.
    pub(super) fn find_inner(&self, inner: ExchangeId) -> Option<ExchangeId> {
        let is_it =
            |it: &Exchange| matches!(it, Exchange::Forwarded { inner: id, .. } if *id == inner);
        self.0.find_from(0, is_it).map(id_of)
    }

    /// Returns the number of exchanges that are being drained.
    pub(super) fn draining(&self) -> usize {
        self.0.iter().filter(|(_, it)| matches!(it, Exchange::Draining { .. })).count()
    }

    /// Returns an exchange that was drained for too long, if any.
    pub(super) fn overdue(&self, now: Instant) -> Option<ExchangeId> {
        let due = |it: &Exchange| matches!(it, Exchange::Draining { until, .. } if *until <= now);
        self.0.find_from(0, due).map(id_of)
    }

    /// Returns when the first drained exchange must be aborted.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let until = |(_, it): (Key, &Exchange)| match it {
            Exchange::Draining { until, .. } => Some(*until),
            _ => None,
        };
        self.0.iter().filter_map(until).min()
    }
}

// ------------------------------------------------------------------ the exchanges of the authorization, one at a time

/// The exchange in progress.
pub(super) struct Fetch {
    exchange: ExchangeId,
    url: Arc<Location>,
    method: &'static str,
    /// The fields and the body of the request, for a redirect.
    fields: Vec<Field>,
    form: Bytes,
    redirects: u32,
    /// The status, once the head was received.
    status: Option<u16>,
    body: Vec<u8>,
}

impl fmt::Debug for Fetch {
    /// Omits the fields and the bodies, which may contain credentials and tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch")
            .field("exchange", &self.exchange)
            .field("method", &self.method)
            .field("url", &self.url)
            .field("redirects", &self.redirects)
            .field("status", &self.status)
            .field("body_length", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// A complete response.
pub(super) struct Fetched {
    pub(super) url: Arc<Location>,
    pub(super) status: u16,
    /// The body. Empty for a failed request of a document.
    pub(super) body: Vec<u8>,
}

impl Fetched {
    /// Returns the URL of the response, for messages.
    pub(super) fn place(&self) -> String {
        place(&self.url)
    }

    pub(super) const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// Returns the failure for a response with an error status, with the start of its body.
    pub(super) fn refusal(&self) -> AuthorizationFailure {
        self.refusal_without([])
    }

    /// Returns the failure for a response with an error status, with the start of its body. The
    /// secrets in the request for it are left out, should it repeat them, and so is the whole body
    /// if it has a secret of its own.
    // MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHC-046]
    pub(super) fn refusal_without<'a>(
        &self,
        secrets: impl IntoIterator<Item = &'a str>,
    ) -> AuthorizationFailure {
        let mut text = String::from_utf8(self.body.clone()).unwrap_or_default();
        if SECRET_MEMBERS.iter().any(|name| text.contains(name)) {
            text.clear();
        }
        for secret in secrets.into_iter().filter(|it| !it.is_empty()) {
            // As they are, as JSON may have them, and as the form had them.
            let (escaped, encoded) = (secret.replace('/', "\\/"), form::encoded(secret));
            for written in [secret, &escaped, &encoded] {
                text = text.replace(written, "..");
            }
        }
        let body = TransportFailure::excerpt(text.as_bytes());
        AuthorizationFailure::Status { url: self.place(), status: self.status, body }
    }
}

const USER_AGENT: &str = "user-agent";

/// The name of a client whose requests to the server have none.
pub(super) const DEFAULT_USER_AGENT: &str =
    concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// The members of answers that are secrets.
const SECRET_MEMBERS: [&str; 4] =
    ["\"access_token\"", "\"refresh_token\"", "\"id_token\"", "\"client_secret\""];

impl AuthorizationClient {
    /// Requests a document.
    ///
    /// # Errors
    ///
    /// See [`AuthorizationClient::check_place`].
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHC-045]: the authorization's own
    // requests never carry the token.
    pub(super) fn get(&mut self, url: Location) -> Result<(), AuthorizationFailure> {
        self.get_with(url, [])
    }

    /// Requests a document with these fields in addition to those of every request.
    ///
    /// # Errors
    ///
    /// See [`AuthorizationClient::check_place`].
    pub(super) fn get_with(
        &mut self,
        url: Location,
        besides: impl IntoIterator<Item = Field>,
    ) -> Result<(), AuthorizationFailure> {
        self.check_place(&url)?;
        self.fetch(url, "GET", besides, Bytes::new());
        Ok(())
    }

    /// Checks that the server may make the client request this URL.
    ///
    /// # Errors
    ///
    /// [`AuthorizationFailure::Internal`].
    // MCP 2026-07-28 security-best-practices#server-side-request-forgery-ssrf [SEC-006]
    pub(super) fn check_place(&self, url: &Location) -> Result<(), AuthorizationFailure> {
        let open = !self.server.origin().is_internal() && !self.options.internal_addresses;
        if open && url.origin().is_internal() {
            return Err(AuthorizationFailure::Internal { url: place(url) });
        }
        Ok(())
    }

    /// Sends a form or a document. `besides` contains fields other than those of every request.
    pub(super) fn post(
        &mut self,
        url: Location,
        besides: impl IntoIterator<Item = Field>,
        body: String,
    ) {
        self.fetch(url, "POST", besides, body.into());
    }

    fn fetch(
        &mut self,
        url: Location,
        method: &'static str,
        besides: impl IntoIterator<Item = Field>,
        form: Bytes,
    ) {
        let accepted = [
            ("accept".into(), ByteString::from_static("application/json")),
            // Without the field, a server may compress.
            ("accept-encoding".into(), ByteString::from_static("identity")),
            (USER_AGENT.into(), self.user_agent.clone()),
        ];
        let fields = accepted.into_iter().chain(besides).collect();
        self.send_fetch(Arc::new(url), method, fields, form, 0);
    }

    fn send_fetch(
        &mut self,
        url: Arc<Location>,
        method: &'static str,
        fields: Vec<Field>,
        form: Bytes,
        redirects: u32,
    ) {
        let exchange = self.exchanges.insert(Exchange::Fetch);
        let (to, sent, body) = (Arc::clone(&url), fields.clone(), form.clone());
        let request = OutgoingRequest::new(exchange, method, to, sent, body);
        self.transmits.push_back(ClientTransmit::Send(request));
        let (status, body) = (None, Vec::new());
        self.fetch = Some(Fetch { exchange, url, method, fields, form, redirects, status, body });
    }

    /// Aborts the exchange in progress.
    pub(super) fn stop_fetching(&mut self) {
        if let Some(fetch) = self.fetch.take() {
            self.abort_exchange(fetch.exchange);
        }
    }

    pub(super) fn fetch_answered(
        &mut self,
        exchange: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) {
        let Some(mut fetch) = self.fetch.take_if(|it| it.exchange == exchange) else { return };
        let status = head.status().0;
        if status < 200 || fetch.status.is_some() {
            self.fetch = Some(fetch);
            return;
        }
        if let Some(nonce) = head.dpop_nonce() {
            self.nonces.insert(&fetch.url, nonce);
        }
        if (300..400).contains(&status) {
            self.drain(exchange, now);
            return match self.redirect_target(&fetch, head) {
                Some(url) => {
                    let Fetch { method, fields, form, redirects, .. } = fetch;
                    self.send_fetch(Arc::new(url), method, fields, form, redirects + 1);
                    self.fetch_moved(now);
                }
                None => self.fetch_failed(failure_from_redirect(&fetch.url, head), now),
            };
        }
        // The body of a missing document is not needed; that of a refused form contains the reason.
        if fetch.method == "GET" && !head.status().is_success() {
            self.drain(exchange, now);
            let Fetch { url, body, .. } = fetch;
            let fetched = Fetched { url, status, body };
            return match status {
                500.. => self.fetch_failed(fetched.refusal(), now),
                _ => self.fetched(fetched, now),
            };
        }
        if let Some(fault) = head.encoding_fault() {
            self.drain(exchange, now);
            let fetched = Fetched { url: fetch.url, status, body: Vec::new() };
            let failure = AuthorizationFailure::Encoded { url: fetched.place(), fault };
            return match fetched.is_success() {
                true => self.fetch_failed(failure, now),
                false => self.fetched(fetched, now),
            };
        }
        fetch.status = Some(status);
        self.fetch = Some(fetch);
    }

    /// Returns the target of a redirect that is followed: only within the same origin, as a form
    /// contains secrets for its target, and with a status that keeps a form.
    // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-067]
    fn redirect_target(&self, fetch: &Fetch, head: &IncomingResponse<'_>) -> Option<Location> {
        let target = head.location().filter(|it| it.len() <= LOCATION_LENGTH_MAX)?;
        let url = fetch.url.resolve(core::str::from_utf8(target).ok()?).ok()?;
        let kept = match head.status().0 {
            301..=303 => fetch.method == "GET",
            // A proof is for one URL.
            307 | 308 => !fetch.fields.iter().any(|(name, _)| name == "dpop"),
            _ => false,
        };
        let followed = kept
            && fetch.redirects < self.options.limits.redirects_max
            && url.same_origin(&fetch.url);
        followed.then_some(url)
    }

    pub(super) fn fetch_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant) {
        let max = self.options.limits.document_bytes_max;
        let Some(fetch) = self.fetch.as_mut().filter(|it| it.exchange == exchange) else { return };
        if bytes.len() > max.saturating_sub(fetch.body.len()) {
            let url = place(&fetch.url);
            self.stop_fetching();
            return self.fetch_failed(AuthorizationFailure::TooLong { url }, now);
        }
        fetch.body.extend_from_slice(bytes);
    }

    pub(super) fn fetch_ended(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(fetch) = self.fetch.take_if(|it| it.exchange == exchange) else { return };
        let Fetch { url, status, body, .. } = fetch;
        match status {
            Some(status) => self.fetched(Fetched { url, status, body }, now),
            None => {
                let url = place(&url);
                let failure = ExchangeFailure::Broken;
                self.fetch_failed(AuthorizationFailure::Unreachable { url, failure }, now);
            }
        }
    }

    pub(super) fn fetch_broken(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    ) {
        let Some(fetch) = self.fetch.take_if(|it| it.exchange == exchange) else { return };
        let url = place(&fetch.url);
        self.fetch_failed(AuthorizationFailure::Unreachable { url, failure }, now);
    }

    /// Returns the URL of the expected response, for messages.
    pub(super) fn fetching(&self) -> Option<String> {
        self.fetch.as_ref().map(|it| place(&it.url))
    }
}

/// Returns a URL without its query, which may contain secrets.
pub(super) fn place(url: &Location) -> String {
    url.as_str().split('?').next().unwrap_or_default().to_string()
}

/// Returns the failure for a redirect that is not followed.
fn failure_from_redirect(url: &Location, head: &IncomingResponse<'_>) -> AuthorizationFailure {
    let written = head.location().and_then(TransportFailure::excerpt);
    let Some(written) = written else {
        return AuthorizationFailure::Status {
            url: place(url),
            status: head.status().0,
            body: None,
        };
    };
    // The query is left out, as it may contain secrets.
    let target = written.split(['?', '#']).next().unwrap_or_default();
    let target = url.resolve(target).map_or_else(|_| target.to_string(), |it| place(&it));
    AuthorizationFailure::Redirected { url: place(url), target }
}

// ------------------------------------------------------------------ the requests of the HTTP client and their responses

impl AuthorizationClient {
    /// Sends a request, or queues it until a token or proof is available.
    pub(super) fn route(&mut self, held: Box<RetryableRequest>, now: Instant) {
        // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHC-045]: the token is for one
        // server.
        if !held.url().same_origin(&self.server) {
            let inner = held.inner();
            let exchange = self.exchanges.insert(Exchange::Forwarded { inner, held: None });
            return self
                .transmits
                .push_back(ClientTransmit::Send(held.request.again(exchange, [])));
        }
        self.note_user_agent(&held);
        // The end of a session does not wait for a user.
        if self.closed || held.request.method == "DELETE" {
            return self.send_authorized(held, now);
        }
        if self.flow.is_none() {
            self.prepare(now);
        }
        match self.flow {
            Some(_) => self.wait(held, false),
            None => self.send_authorized(held, now),
        }
    }

    /// Keeps the name of the client as its requests to the server have it, the one field of theirs
    /// that is not only for that server.
    fn note_user_agent(&mut self, held: &RetryableRequest) {
        let named = held.request.fields().find(|(name, _)| *name == USER_AGENT);
        if let Some((_, named)) = named.filter(|(_, named)| *named != &*self.user_agent) {
            self.user_agent = named.into();
        }
    }

    /// Sends a request with the current token, if any.
    pub(super) fn send_authorized(&mut self, mut held: Box<RetryableRequest>, now: Instant) {
        held.token = self.token_number();
        match &self.tokens {
            None => self.send(held, []),
            Some(tokens) if tokens.stored.token_type == TokenType::Dpop => self.prove(held, now),
            Some(tokens) => {
                let field = authorization("Bearer ", &tokens.stored.access_token);
                self.send(held, [field]);
            }
        }
    }

    fn send(&mut self, held: Box<RetryableRequest>, besides: impl IntoIterator<Item = Field>) {
        let (inner, held) = (held.inner(), Some(held));
        let exchange = self.exchanges.insert(Exchange::Forwarded { inner, held });
        if let Some(Exchange::Forwarded { held: Some(held), .. }) = self.exchanges.get_mut(exchange)
        {
            let request = held.request.again(exchange, besides);
            self.transmits.push_back(ClientTransmit::Send(request));
        }
    }

    /// Requests the proof for a request. Each request needs its own.
    fn prove(&mut self, mut held: Box<RetryableRequest>, now: Instant) {
        if self.waiting.len() >= self.options.limits.waiting_max {
            return self.refuse(held.inner(), Arc::new(AuthorizationFailure::TooManyWaiting));
        }
        held.nonce = self.nonces.get(held.url()).map(String::from);
        let token = self.tokens.as_ref().map(|tokens| tokens.stored.access_token.clone());
        let (method, url) = (held.request.method, held.url().clone());
        let Some((action, input)) = self.ask_for_proof(method, &url, token.as_deref(), now) else {
            return self.send(held, []);
        };
        let deadline = now + self.options.timeouts.application;
        self.waiting.push(held, WaitReason::Proof { action, input, deadline });
    }

    /// Handles the signature of a request's proof.
    pub(super) fn request_signed(
        &mut self,
        action: ActionId,
        signature: Result<&[u8], ActionFailure>,
        now: Instant,
    ) {
        let Some((held, input)) = self.waiting.take_for_proof(action) else { return };
        let signature = match signature {
            Ok(signature) => signature,
            Err(failure) => return self.refuse(held.inner(), Arc::new(failure.into())),
        };
        match &self.tokens {
            Some(tokens) if tokens.number == held.token => {
                let token = authorization("DPoP ", &tokens.stored.access_token);
                let proof = ("dpop".into(), ByteString::from(input.signed(signature)));
                self.send(held, [token, proof]);
            }
            // The token was replaced meanwhile, so the proof does not match it.
            _ => self.send_authorized(held, now),
        }
    }

    /// Fails a request because the signature of its proof did not arrive in time.
    pub(super) fn proof_overdue(&mut self, action: ActionId) {
        if let Some((held, _)) = self.waiting.take_for_proof(action) {
            self.actions.withdraw(action);
            let failure = AuthorizationFailure::TimedOut(WaitingFor::Application);
            self.refuse(held.inner(), Arc::new(failure));
        }
    }

    /// Takes one of the requests that wait for a signature.
    pub(super) fn take_unproven(&mut self) -> Option<Box<RetryableRequest>> {
        let action = self.waiting.next_proof()?;
        self.actions.withdraw(action);
        self.waiting.take_for_proof(action).map(|(held, _)| held)
    }

    /// Queues a request until the flow ends. `refused`: it was refused with 401.
    pub(super) fn wait(&mut self, held: Box<RetryableRequest>, refused: bool) {
        self.wait_for(held, WaitReason::Flow { refused });
    }

    fn wait_for(&mut self, held: Box<RetryableRequest>, until: WaitReason) {
        let inner = held.inner();
        if self.waiting.len() >= self.options.limits.waiting_max {
            return self.refuse(inner, Arc::new(AuthorizationFailure::TooManyWaiting));
        }
        // Calls are paused together with a paused request, and none waits for an optional stream.
        if let WaitReason::Flow { .. } = until {
            self.events.push_back(AuthorizationEvent::Paused(inner));
        }
        self.waiting.push(held, until);
    }

    /// Sends the optional streams that wait for another token than the one they were refused with.
    pub(super) fn send_streams(&mut self, now: Instant) {
        while let Some(held) = self.waiting.take_for_token(self.token_number()) {
            self.send_authorized(held, now);
        }
    }

    pub(super) fn refuse(&mut self, inner: ExchangeId, failure: Arc<AuthorizationFailure>) {
        self.events.push_back(AuthorizationEvent::Refused(inner, failure));
    }

    /// Aborts a request of the HTTP client.
    pub(super) fn abort_request(&mut self, inner: ExchangeId) {
        match self.waiting.remove(inner) {
            Some(WaitReason::Proof { action, .. }) => self.actions.withdraw(action),
            Some(WaitReason::Flow { .. } | WaitReason::Token) => {}
            None => {
                if let Some(exchange) = self.exchanges.find_inner(inner) {
                    self.abort_exchange(exchange);
                }
            }
        }
    }

    /// Aborts an exchange, or drops it before it begins.
    pub(super) fn abort_exchange(&mut self, exchange: ExchangeId) {
        if self.exchanges.remove(exchange).is_none() {
            return;
        }
        let waits =
            |it: &ClientTransmit| matches!(it, ClientTransmit::Send(it) if it.exchange == exchange);
        match self.transmits.iter().position(waits) {
            Some(at) => drop(self.transmits.remove(at)),
            None => self.transmits.push_back(ClientTransmit::Abort(exchange)),
        }
    }

    /// Handles the head of a response to a request that can be sent again. Returns `false` if the
    /// response belongs to the HTTP client.
    pub(super) fn judge(
        &mut self,
        mut held: Box<RetryableRequest>,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) -> bool {
        if let Some(nonce) = head.dpop_nonce() {
            self.nonces.insert(held.url(), nonce);
        }
        let status = head.status().0;
        if !matches!(status, 401 | 403) || self.closed || held.request.method == "DELETE" {
            if head.status().is_success() {
                self.accepted(&held);
            }
            return false;
        }
        let challenges = Challenge::parse(head.challenges().iter().copied());
        let challenge = BearerChallenge::select(&challenges);
        if status == 401 {
            let bound =
                self.tokens.as_ref().is_some_and(|it| it.stored.token_type == TokenType::Dpop);
            if bound && held.token == self.token_number() && asks_for_nonce(&challenges) {
                self.nonce_wanted(held, now);
            } else {
                self.unauthorized(held, challenge, now);
            }
            return true;
        }
        match challenge {
            // A call that needs the scopes as well will say so.
            Some(_) if held.request.is_lookup() => false,
            Some(challenge) if challenge.error.as_deref() == Some("insufficient_scope") => {
                held.nonces = 0;
                self.scopes_wanted(held, challenge, now);
                true
            }
            // Some servers answer like this in place of 401 to a request without a token.
            Some(challenge) if held.token == 0 && challenge.resource_metadata.is_some() => {
                self.unauthorized(held, Some(challenge), now);
                true
            }
            _ => false,
        }
    }

    /// Records that the server has accepted a request.
    fn accepted(&mut self, held: &RetryableRequest) {
        if held.step_ups > 0 {
            self.operations.forget(held.operation());
        }
        match held.request.method {
            "GET" => self.streams_accepted = true,
            _ => self.posts_accepted = true,
        }
    }

    /// Whether a refusal of the request does not matter: it opens the stream of a server that works
    /// without one, as far as is known.
    // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HCLI-009]
    fn is_optional(&self, held: &RetryableRequest) -> bool {
        let resumes = || held.request.fields().any(|(name, _)| name == "last-event-id");
        let opens = held.request.method == "GET" && !resumes();
        opens && self.posts_accepted && !self.streams_accepted
    }

    /// Sends the request again with a new nonce in its proof (RFC 9449, section 9).
    fn nonce_wanted(&mut self, mut held: Box<RetryableRequest>, now: Instant) {
        let known = self.nonces.get(held.url());
        if known == held.nonce.as_deref() || held.nonces >= self.options.limits.nonces_max {
            return self.refuse(held.inner(), Arc::new(self.not_accepted(None)));
        }
        held.nonces += 1;
        self.send_authorized(held, now);
    }

    /// Returns the failure for a token that was just issued and is not accepted, with the words of
    /// the server.
    // MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHC-046]
    fn not_accepted(&self, challenge: Option<&BearerChallenge>) -> AuthorizationFailure {
        let words = challenge.and_then(|it| it.error_description.as_ref().or(it.error.as_ref()));
        let token = self.tokens.as_ref().map(|it| &*it.stored.access_token);
        let words = words.map(|it| match token {
            Some(token) => it.replace(token, ".."),
            None => it.clone(),
        });
        let reason = words.and_then(|it| TransportFailure::excerpt(it.as_bytes()));
        AuthorizationFailure::NotAccepted { reason }
    }

    // MCP 2025-03-26 basic/authorization#example-authorization-code-grant [AUTHC-005]: with any
    // challenge or without one.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements [AUTHC-015]
    fn unauthorized(
        &mut self,
        held: Box<RetryableRequest>,
        challenge: Option<BearerChallenge>,
        now: Instant,
    ) {
        let current = held.token == self.token_number();
        if current && self.is_optional(&held) {
            // No user is asked for it, and no call waits for it.
            return self.wait_for(held, WaitReason::Token);
        }
        if self.flow.is_some() {
            return self.wait(held, current);
        }
        if !current {
            return self.send_authorized(held, now);
        }
        if held.authorized {
            return self.refuse(held.inner(), Arc::new(self.not_accepted(challenge.as_ref())));
        }
        let goal = Goal::Authorize { may_renew: !held.renewed };
        self.wait(held, true);
        // Its words are not needed, and may repeat the token.
        let challenge = challenge.map(|it| BearerChallenge { error_description: None, ..it });
        self.start(goal, challenge, now);
    }

    /// Gets a token with the scopes that the request needs.
    // MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHC-052] [AUTHC-053]
    fn scopes_wanted(
        &mut self,
        mut held: Box<RetryableRequest>,
        challenge: BearerChallenge,
        now: Instant,
    ) {
        let current = held.token == self.token_number();
        if current && self.is_optional(&held) {
            return self.wait_for(held, WaitReason::Token);
        }
        if self.flow.is_some() {
            return self.wait(held, false);
        }
        if !current {
            return self.send_authorized(held, now);
        }
        // MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHC-054]
        let limits = &self.options.limits;
        let operation = held.operation();
        let often = self.operations.count(operation).max(held.step_ups) >= limits.step_ups_max;
        if often || self.has_scopes(&challenge) {
            return self.refuse(held.inner(), Arc::new(insufficient_scope(&challenge)));
        }
        self.operations.add(operation, limits.operations_max);
        held.step_ups += 1;
        self.wait(held, false);
        self.start(Goal::StepUp, Some(challenge), now);
    }

    /// Whether the token already has all scopes that a challenge names, so that requesting them
    /// again is useless.
    fn has_scopes(&self, challenge: &BearerChallenge) -> bool {
        let max = self.options.limits.scopes_max;
        match (&self.tokens, &challenge.scope) {
            (Some(tokens), Some(wanted)) => tokens.has_scopes(wanted, max),
            _ => false,
        }
    }
}

pub(super) fn insufficient_scope(challenge: &BearerChallenge) -> AuthorizationFailure {
    let description = challenge.error_description.as_deref();
    AuthorizationFailure::InsufficientScope {
        scope: challenge.scope.clone(),
        description: description.and_then(|it| TransportFailure::excerpt(it.as_bytes())),
    }
}

// MCP 2026-07-28 basic/authorization/index#token-requirements [AUTHC-043] [AUTHC-044]
fn authorization(scheme: &str, token: &str) -> Field {
    ("authorization".into(), ByteString::from([scheme, token].concat()))
}
