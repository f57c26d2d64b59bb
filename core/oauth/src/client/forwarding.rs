//! The requests of the HTTP client and their responses.

use alloc::boxed::Box;
use alloc::string::String;

use bytestring::ByteString;
use mcp_sansio::Instant;
use mcp_sansio::http::{ClientTransmit, ExchangeId, Field, IncomingResponse};
use mcp_sansio_sync::Arc;

use crate::dpop::asks_for_nonce;
use crate::token::TokenType;
use crate::{BearerChallenge, Challenge};

use super::exchanges::Exchange;
use super::flow::Goal;
use super::waiting::{RetryableRequest, WaitReason};
use super::{
    ActionFailure, ActionId, AuthorizationClient, AuthorizationEvent, AuthorizationFailure,
    WaitingFor,
};

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
        let inner = held.inner();
        if self.waiting.len() >= self.options.limits.waiting_max {
            return self.refuse(inner, Arc::new(AuthorizationFailure::TooManyWaiting));
        }
        self.waiting.push(held, WaitReason::Flow { refused });
        self.events.push_back(AuthorizationEvent::Paused(inner));
    }

    pub(super) fn refuse(&mut self, inner: ExchangeId, failure: Arc<AuthorizationFailure>) {
        self.events.push_back(AuthorizationEvent::Refused(inner, failure));
    }

    /// Aborts a request of the HTTP client.
    pub(super) fn abort_request(&mut self, inner: ExchangeId) {
        match self.waiting.remove(inner) {
            Some(WaitReason::Proof { action, .. }) => self.actions.withdraw(action),
            Some(WaitReason::Flow { .. }) => {}
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
            if held.step_ups > 0 && head.status().is_success() {
                self.operations.forget(held.operation());
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
            Some(challenge) if challenge.error.as_deref() == Some("insufficient_scope") => {
                held.nonces = 0;
                self.scopes_wanted(held, challenge, now);
                true
            }
            _ => false,
        }
    }

    /// Sends the request again with a new nonce in its proof (RFC 9449, section 9).
    fn nonce_wanted(&mut self, mut held: Box<RetryableRequest>, now: Instant) {
        let known = self.nonces.get(held.url());
        if known == held.nonce.as_deref() || held.nonces >= self.options.limits.nonces_max {
            return self.refuse(held.inner(), Arc::new(AuthorizationFailure::NotAccepted));
        }
        held.nonces += 1;
        self.send_authorized(held, now);
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
        if self.flow.is_some() {
            return self.wait(held, current);
        }
        if !current {
            return self.send_authorized(held, now);
        }
        if held.authorized {
            return self.refuse(held.inner(), Arc::new(AuthorizationFailure::NotAccepted));
        }
        let goal = Goal::Authorize { may_renew: !held.renewed };
        self.wait(held, true);
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
        if self.flow.is_some() {
            return self.wait(held, false);
        }
        if held.token != self.token_number() {
            return self.send_authorized(held, now);
        }
        // MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHC-054]
        let limits = &self.options.limits;
        let operation = held.operation();
        let often = self.operations.count(operation).max(held.step_ups) >= limits.step_ups_max;
        if often || self.has_scopes(&challenge) {
            let failure = AuthorizationFailure::InsufficientScope { scope: challenge.scope };
            return self.refuse(held.inner(), Arc::new(failure));
        }
        self.operations.add(operation, limits.operations_max);
        held.step_ups += 1;
        self.wait(held, false);
        self.start(Goal::Authorize { may_renew: false }, Some(challenge), now);
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

// MCP 2026-07-28 basic/authorization/index#token-requirements [AUTHC-043] [AUTHC-044]
fn authorization(scheme: &str, token: &str) -> Field {
    ("authorization".into(), ByteString::from([scheme, token].concat()))
}
