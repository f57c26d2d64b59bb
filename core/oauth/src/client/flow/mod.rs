//! The flow that gets a token: a sequence of steps, each waiting for one input.

mod identity;
mod token;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use bytestring::ByteString;
use mcp_sansio::{Instant, Revision};
use mcp_sansio_sync::Arc;

use super::exchanges::{Fetched, insufficient_scope};
use super::{
    ActionFailure, ActionId, AssertionRequest, AuthorizationAction, AuthorizationClient,
    AuthorizationEvent, AuthorizationFailure, AuthorizationRequest, GrantFlow, WaitingFor,
};
use crate::client::credential::StoredTokens;
use crate::client::form::Form;
use crate::client::metadata::{base_issuer, is_same_issuer, without_mark};
use crate::client::scopes::{ScopeSelection, Scopes};
use crate::discovery::{is_secure, named_by_challenge};
use crate::{
    AuthorizationResponse, AuthorizationServerMetadata, BearerChallenge, CodeVerifier,
    MetadataFault, MetadataUrls, ProtectedResourceMetadata, ResourceUri, ResponseFault, State,
};

use identity::{Identity, PendingRegistration, failure_from_metadata};
use token::{GrantSource, TokenStep};

/// An attempt to get a token.
#[derive(Debug)]
pub(super) struct Flow {
    goal: Goal,
    /// The challenge of the server that requires a token.
    challenge: Option<BearerChallenge>,
    step: Step,
    deadline: Instant,
    discovered: Discovered,
    /// Whether and how this flow has locked the stored tokens.
    lock: TokenLock,
    /// The client registers again, because a registration was refused or lacks scopes.
    registered_again: bool,
}

/// The goal of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Load the stored tokens. `then`: get a token if the store is empty.
    Load { then: bool },
    /// Renew a token before it expires. `then`: get another one if the renewal fails.
    Renew { then: bool },
    /// Get a new token before the current one expires.
    Replace,
    /// Get a token because the server accepts none of the existing ones.
    Authorize {
        /// Whether the refresh token may be tried.
        may_renew: bool,
    },
    /// Get a token with more scopes than the current one, which the server accepts.
    StepUp,
}

impl Goal {
    /// Whether a renewed token is sufficient.
    const fn may_renew(self) -> bool {
        matches!(self, Self::Renew { .. } | Self::Replace | Self::Authorize { may_renew: true })
    }
}

/// The lock on the stored tokens, which a flow takes at most once.
// Without it, two processes could send the same refresh token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TokenLock {
    /// No refresh token was needed so far.
    #[default]
    NotNeeded,
    /// Requested with this action, and held once it is answered.
    Requested(ActionId),
    /// Released, or not available: the client then renews without it.
    Gone,
}

impl TokenLock {
    /// Records that the lock was not obtained.
    fn fail(&mut self) {
        if let Self::Requested(_) = self {
            *self = Self::Gone;
        }
    }
}

/// The results of the steps so far.
#[derive(Debug, Default)]
struct Discovered {
    resource: Option<ResourceUri>,
    /// The scopes that the metadata of the resource names.
    resource_scopes: Option<Vec<String>>,
    /// Issuers that are still to be tried.
    issuers: vec::IntoIter<String>,
    /// Why the URLs of the metadata of the resource have none.
    missing: Option<AuthorizationFailure>,
    /// Why the first issuer could not be used.
    last_failure: Option<AuthorizationFailure>,
    /// The server has no metadata and follows 2025-03-26, as far as is known.
    implied: bool,
    metadata: Option<Arc<AuthorizationServerMetadata>>,
    identity: Option<Arc<Identity>>,
    /// The scopes to request.
    scopes: Scopes,
}

/// The input that a flow waits for.
#[derive(Debug)]
enum Step {
    /// None: the flow has not begun.
    Begin,
    /// The stored tokens.
    LoadTokens(ActionId),
    /// The metadata of the resource.
    Resource(MetadataUrls),
    /// The metadata of this issuer.
    Issuer(String, MetadataUrls),
    /// The metadata of the server as its own authorization server.
    Base,
    /// The stored registration of the client.
    LoadClient(ActionId),
    /// The issuer that the registered client with this index was used with before.
    LoadIssuer(ActionId, usize),
    /// The answer to a registration.
    Registration(Box<PendingRegistration>),
    /// The user's sign-in.
    SignIn(Box<SignIn>),
    /// An assertion.
    Assertion(ActionId),
    /// A token.
    Token(Box<TokenStep>),
}

/// The result of a step.
enum Next {
    /// Wait for the input of the next step.
    Wait(Step),
    /// End the flow.
    Done(Outcome),
}

/// How a flow ended without failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The store was read.
    Loaded,
    /// A refresh token was used to get a token.
    Renewed,
    /// A grant was used to get a token.
    Authorized,
    /// The token has not changed.
    Unchanged,
}

type StepResult = Result<Next, AuthorizationFailure>;

impl AuthorizationClient {
    /// Starts the flow that must end before a request is sent.
    pub(super) fn prepare(&mut self, now: Instant) {
        if !self.loaded {
            if is_secure(&self.server) {
                return self.start(Goal::Load { then: false }, None, now);
            }
            self.loaded = true;
        }
        if let Some(goal) = self.due(false, now) {
            self.start(goal, None, now);
        }
    }

    /// Returns the goal that replaces the token if it expires soon. `then`: also if the renewal
    /// fails.
    pub(super) fn due(&self, then: bool, now: Instant) -> Option<Goal> {
        let tokens = self.tokens.as_ref()?;
        if now < self.renewal_not_before || !tokens.is_due(self.clock.unix_time(now)) {
            return None;
        }
        if tokens.stored.refresh_token.is_some() {
            return Some(Goal::Renew { then });
        }
        (!self.options.grant.needs_user()).then_some(Goal::Replace)
    }

    /// Starts a flow. No other one may be in progress.
    pub(super) fn start(&mut self, goal: Goal, challenge: Option<BearerChallenge>, now: Instant) {
        let flow = Flow {
            goal,
            challenge,
            step: Step::Begin,
            deadline: now,
            discovered: Discovered::default(),
            lock: TokenLock::default(),
            registered_again: false,
        };
        self.advance(Box::new(flow), now, |client, flow| client.begin(flow, now));
    }

    fn begin(&mut self, flow: &mut Flow, now: Instant) -> StepResult {
        if !is_secure(&self.server) {
            return Err(AuthorizationFailure::Insecure);
        }
        match flow.goal {
            Goal::Load { .. } => Ok(self.load_tokens()),
            Goal::Renew { .. } if self.tokens.is_some() => Ok(self.lock_tokens(flow)),
            // Another process of the application may have renewed the token meanwhile: its refresh
            // token is valid only once.
            goal if goal.may_renew() && self.tokens.is_some() => Ok(self.load_tokens()),
            Goal::Renew { .. } => self.renew(flow, now),
            Goal::Replace | Goal::Authorize { .. } | Goal::StepUp => self.find_resource(flow),
        }
    }

    /// Performs a step and handles its result.
    fn advance(
        &mut self,
        mut flow: Box<Flow>,
        now: Instant,
        step: impl FnOnce(&mut Self, &mut Flow) -> StepResult,
    ) {
        match step(self, &mut flow) {
            Ok(Next::Wait(step)) => {
                flow.deadline = now + self.patience(&step);
                flow.step = step;
                self.flow = Some(flow);
            }
            Ok(Next::Done(outcome)) => {
                self.unlock_tokens(&mut flow);
                self.succeeded(&flow, outcome, now);
            }
            Err(failure) => {
                self.unlock_tokens(&mut flow);
                let failure = flow.discovered.explain(failure);
                self.failed(&flow, failure, now);
            }
        }
    }

    fn patience(&self, step: &Step) -> core::time::Duration {
        let timeouts = &self.options.timeouts;
        match step {
            Step::SignIn(_) => timeouts.user,
            step if step.action().is_some() => timeouts.application,
            _ => timeouts.exchange,
        }
    }

    // ------------------------------------------------------------------ inputs

    /// Restarts the timeout because another exchange replaced the expected one.
    pub(super) fn fetch_moved(&mut self, now: Instant) {
        if let Some(flow) = &mut self.flow {
            flow.deadline = now + self.options.timeouts.exchange;
        }
    }

    pub(super) fn fetched(&mut self, fetched: Fetched, now: Instant) {
        let Some(mut flow) = self.flow.take() else { return };
        let step = core::mem::replace(&mut flow.step, Step::Begin);
        self.advance(flow, now, |client, flow| match step {
            Step::Resource(urls) => client.resource_answered(flow, urls, &fetched),
            Step::Issuer(issuer, urls) => client.issuer_answered(flow, issuer, urls, &fetched, now),
            Step::Base => client.base_answered(flow, &fetched, now),
            Step::Registration(step) => client.registered(flow, *step, &fetched, now),
            Step::Token(step) => client.token_answered(flow, step, &fetched, now),
            // These do not wait for a response.
            step => Ok(Next::Wait(step)),
        });
    }

    /// Handles an exchange without a usable response. Metadata may be elsewhere.
    pub(super) fn fetch_failed(&mut self, failure: AuthorizationFailure, now: Instant) {
        let Some(mut flow) = self.flow.take() else { return };
        let step = core::mem::replace(&mut flow.step, Step::Begin);
        self.advance(flow, now, |client, flow| match step {
            Step::Resource(urls) => {
                flow.discovered.pass_over(failure);
                client.ask_for_resource(flow, urls)
            }
            Step::Issuer(issuer, urls) => {
                flow.discovered.last_failure.get_or_insert(failure);
                client.ask_for_issuer(flow, issuer, urls)
            }
            Step::Base => Err(flow.discovered.missing.take().unwrap_or(failure)),
            _ => Err(failure),
        });
    }

    /// Takes the flow if it waits for this action.
    fn take_flow_of(&mut self, action: ActionId) -> Option<(Box<Flow>, Step)> {
        let mut flow = self.flow.take_if(|flow| flow.step.action() == Some(action))?;
        let step = core::mem::replace(&mut flow.step, Step::Begin);
        Some((flow, step))
    }

    pub(super) fn flow_signed(
        &mut self,
        action: ActionId,
        signature: Result<&[u8], ActionFailure>,
        now: Instant,
    ) {
        let Some((flow, step)) = self.take_flow_of(action) else { return };
        self.advance(flow, now, |client, flow| match step {
            Step::Token(step) => client.token_signed(flow, step, signature?, now),
            step => Ok(Next::Wait(step)),
        });
    }

    // ------------------------------------------------------------------ ends

    /// Returns when the flow times out.
    pub(super) fn flow_deadline(&self) -> Option<Instant> {
        self.flow.as_ref().map(|flow| flow.deadline)
    }

    /// Fails the flow because its input did not arrive in time.
    pub(super) fn flow_timed_out(&mut self, now: Instant) {
        let Some(mut flow) = self.flow.take() else { return };
        let awaited = match (&flow.step, self.fetching()) {
            (Step::SignIn(_), _) => WaitingFor::User,
            (_, Some(url)) => WaitingFor::Response(url),
            _ => WaitingFor::Application,
        };
        self.stop_waiting(&flow);
        if let Step::LoadTokens(_) = flow.step {
            flow.lock.fail();
            return self.advance(flow, now, |client, flow| client.tokens_loaded(flow, None, now));
        }
        if let Step::LoadClient(_) = flow.step {
            return self.advance(flow, now, |client, flow| client.client_loaded(flow, None, now));
        }
        if let Step::SignIn(_) = flow.step {
            self.doubt_registration(&flow);
        }
        self.advance(flow, now, |_, _| Err(AuthorizationFailure::TimedOut(awaited)));
    }

    /// Cancels the flow: waiting requests are refused.
    pub(super) fn stop(&mut self) {
        let Some(mut flow) = self.flow.take() else { return };
        self.stop_waiting(&flow);
        match flow.step {
            // The withdrawal releases the lock.
            Step::LoadTokens(_) => {}
            _ => self.unlock_tokens(&mut flow),
        }
        let failure = Arc::new(AuthorizationFailure::Closed);
        self.events.push_back(AuthorizationEvent::Failed(Arc::clone(&failure)));
        for (held, _) in self.waiting.take_for_flow() {
            self.refuse(held.inner(), Arc::clone(&failure));
        }
    }

    fn stop_waiting(&mut self, flow: &Flow) {
        self.stop_fetching();
        if let Some(action) = flow.step.action() {
            self.actions.withdraw(action);
        }
    }

    fn succeeded(&mut self, flow: &Flow, outcome: Outcome, now: Instant) {
        match flow.goal {
            Goal::Load { then: true } if self.tokens.is_none() => {
                return self.start(Goal::Authorize { may_renew: false }, None, now);
            }
            Goal::Load { then } => {
                if let Some(goal) = self.due(then, now) {
                    return self.start(goal, None, now);
                }
            }
            _ => {}
        }
        if let Some(tokens) = &self.tokens
            && (outcome != Outcome::Unchanged && flow.goal != Goal::Load { then: false })
        {
            let (issuer, scope) = (tokens.stored.issuer.clone(), tokens.stored.granted.clone());
            let scope = (!scope.is_empty()).then_some(scope);
            self.events.push_back(AuthorizationEvent::Authorized { issuer, scope });
        }
        for (mut held, refused) in self.waiting.take_for_flow() {
            held.renewed |= refused && outcome == Outcome::Renewed;
            held.authorized |= refused && outcome == Outcome::Authorized;
            self.events.push_back(AuthorizationEvent::Resumed(held.inner()));
            self.send_authorized(held, now);
        }
        self.send_streams(now);
    }

    fn failed(&mut self, flow: &Flow, failure: AuthorizationFailure, now: Instant) {
        let failure = Arc::new(failure);
        self.events.push_back(AuthorizationEvent::Failed(Arc::clone(&failure)));
        // The current token may still be valid.
        let ahead = matches!(flow.goal, Goal::Renew { .. } | Goal::Replace);
        if ahead {
            self.renewal_not_before = now + self.options.timeouts.renewal_pause;
        }
        for (held, refused) in self.waiting.take_for_flow() {
            if ahead && !refused {
                self.events.push_back(AuthorizationEvent::Resumed(held.inner()));
                self.send_authorized(held, now);
            } else {
                self.refuse(held.inner(), Arc::clone(&failure));
            }
        }
    }
}

impl Step {
    /// Returns the action whose answer the step waits for.
    fn action(&self) -> Option<ActionId> {
        match self {
            Self::LoadTokens(action)
            | Self::LoadClient(action)
            | Self::LoadIssuer(action, _)
            | Self::Assertion(action) => Some(*action),
            Self::SignIn(step) => Some(step.action),
            Self::Token(step) => step.action(),
            _ => None,
        }
    }
}

// ------------------------------------------------------------------ the choice of grant and scopes for a token request

/// A pending sign-in of the user, with the values to check the response against.
// MCP 2026-07-28 basic/authorization/index#authorization-response-validation [AUTHC-056]
#[derive(Debug)]
struct SignIn {
    action: ActionId,
    state: State,
    verifier: CodeVerifier,
    issuer: String,
    iss_supported: bool,
}

impl AuthorizationClient {
    fn ask_for_token(&mut self, flow: &mut Flow, now: Instant) -> StepResult {
        // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036]
        let renewable = flow.discovered.identity.as_ref().is_some_and(|identity| {
            let tokens = self.renewable(flow, &identity.issuer);
            tokens.is_some_and(|it| it.client_id == identity.client_id)
        });
        if renewable {
            return match flow.lock {
                TokenLock::NotNeeded => Ok(self.lock_tokens(flow)),
                _ => self.request_token(flow, GrantSource::Renewal, now),
            };
        }
        self.ask_by_grant(flow, now)
    }

    /// Returns the tokens if a refresh token of this issuer may be used in place of the grant.
    fn renewable(&self, flow: &Flow, issuer: &str) -> Option<&StoredTokens> {
        let may_renew = matches!(flow.goal, Goal::Authorize { may_renew: true });
        let tokens = self.tokens.as_ref().filter(|_| may_renew).map(|it| &it.stored);
        tokens.filter(|it| it.refresh_token.is_some() && is_same_issuer(&it.issuer, issuer))
    }

    /// Requests a token with the configured grant.
    fn ask_by_grant(&mut self, flow: &mut Flow, now: Instant) -> StepResult {
        self.unlock_tokens(flow);
        flow.discovered.scopes = self.select_scopes(flow)?;
        self.check_step_up(flow)?;
        match &self.options.grant {
            GrantFlow::AuthorizationCode { .. } => self.send_user(flow),
            GrantFlow::ClientCredentials => {
                self.request_token(flow, GrantSource::ClientCredentials, now)
            }
            GrantFlow::Assertion => {
                let issuer = flow.discovered.identity.as_ref().map(|it| it.issuer.clone());
                self.ask_for_assertion(flow, issuer.unwrap_or_default())
            }
            GrantFlow::Enterprise(provider) => {
                let audience = provider.client_id.clone();
                self.ask_for_assertion(flow, audience)
            }
        }
    }

    /// Fails a step-up that would request the scopes that the token has: the server has named none.
    // MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHC-054]
    fn check_step_up(&self, flow: &Flow) -> Result<(), AuthorizationFailure> {
        let unnamed = flow.challenge.as_ref().filter(|it| it.scope.is_none());
        let (Goal::StepUp, Some(challenge), Some(tokens)) = (flow.goal, unnamed, &self.tokens)
        else {
            return Ok(());
        };
        let max = self.options.limits.scopes_max;
        match tokens.has_scopes(&flow.discovered.scopes.to_string(), max) {
            true => Err(insufficient_scope(challenge)),
            false => Ok(()),
        }
    }

    // MCP 2026-07-28 basic/authorization/index#scope-selection-strategy [AUTHC-049] [AUTHC-050] [AUTHC-051]
    // MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHC-055]
    fn select_scopes(&self, flow: &Flow) -> Result<Scopes, AuthorizationFailure> {
        let max = self.options.limits.scopes_max;
        let mut held = Scopes::new();
        let metadata = flow.discovered.metadata.as_ref();
        // Before the client is identified, there may be tokens of another authorization server.
        if let (Some(tokens), Some(metadata)) = (&self.tokens, metadata)
            && is_same_issuer(&tokens.stored.issuer, &metadata.issuer)
        {
            let texts = [&tokens.stored.requested, &tokens.stored.granted];
            held.extend(texts.into_iter().flat_map(|it| it.split(' ')), max)?;
        }
        Scopes::select(&ScopeSelection {
            revision: self.options.discovery(),
            challenged: flow.challenge.as_ref().and_then(|it| it.scope.as_deref()),
            resource: flow.discovered.resource_scopes.as_deref(),
            issuer: metadata.and_then(|it| it.scopes_supported.as_deref()),
            wanted: &self.options.scopes,
            held: &held,
            // MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-064]
            offline_access: self.options.offline_access && self.options.grant.needs_user(),
            max,
        })
    }

    // ------------------------------------------------------------------ a user

    fn send_user(&mut self, flow: &Flow) -> StepResult {
        let found = &flow.discovered;
        let (Some(metadata), Some(identity), Some(resource)) =
            (&found.metadata, &found.identity, &found.resource)
        else {
            return Err(AuthorizationFailure::Closed);
        };
        let redirect_uri = self.options.grant.redirect_uri(identity.fallback);
        let redirect_uri = redirect_uri.ok_or(AuthorizationFailure::Closed)?.to_string();
        let issuer = metadata.issuer.clone();
        let endpoint = metadata
            .authorization_endpoint()
            .map_err(|fault| failure_from_metadata(&issuer, fault))?;
        self.check_place(&endpoint)?;
        let verifier = CodeVerifier::new(self.entropy.secret());
        let state = State::new(self.entropy.secret());
        let mut form = Form::new();
        form.push("response_type", "code");
        form.push("client_id", &identity.client_id);
        form.push("redirect_uri", &redirect_uri);
        if !found.scopes.is_empty() {
            form.push("scope", &found.scopes.to_string());
        }
        // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
        form.push("state", state.as_str());
        // MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-011] [AUTHC-012]
        form.push("code_challenge", &verifier.challenge());
        form.push("code_challenge_method", "S256");
        // MCP 2026-07-28 basic/authorization/index#resource-parameter-implementation [AUTHC-040]
        form.push("resource", resource.as_str());
        let url = form.appended_to(&endpoint);
        let id = self.actions.next_id();
        let request = AuthorizationRequest { id, url, redirect_uri, issuer: issuer.clone() };
        self.actions.push(AuthorizationAction::Authorize(request));
        let iss_supported = metadata.authorization_response_iss_parameter_supported;
        let sign_in = SignIn { action: id, state, verifier, issuer, iss_supported };
        Ok(Next::Wait(Step::SignIn(Box::new(sign_in))))
    }

    /// Handles the redirect of the user. Returns `false` if it does not answer this request.
    pub(super) fn user_came_back(
        &mut self,
        action: ActionId,
        redirect: Result<&str, ActionFailure>,
        now: Instant,
    ) -> bool {
        // A malformed redirect does not come from the authorization server.
        let response = match redirect.map(AuthorizationResponse::parse) {
            Ok(Err(_)) => return false,
            Ok(Ok(response)) => Ok(response),
            Err(failure) => Err(failure),
        };
        let Some((mut flow, step)) = self.take_flow_of(action) else { return false };
        let Step::SignIn(sign_in) = step else {
            flow.step = step;
            self.flow = Some(flow);
            return false;
        };
        // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
        if response.as_ref().is_ok_and(|it| !it.answers(&sign_in.state)) {
            flow.step = Step::SignIn(sign_in);
            self.flow = Some(flow);
            return false;
        }
        if matches!(response, Err(ActionFailure::TimedOut)) {
            self.doubt_registration(&flow);
        }
        self.advance(flow, now, |client, flow| {
            let SignIn { state, verifier, issuer, iss_supported, .. } = *sign_in;
            // MCP 2026-07-28 basic/authorization/index#authorization-response-validation [AUTHC-057]
            let code = match response?.check(&state, &issuer, iss_supported) {
                Err(ResponseFault::Refused(error))
                    if error.error == "invalid_scope"
                        && flow.discovered.identity.as_deref().is_some_and(|identity| {
                            client.needs_wider_registration(flow, identity)
                        }) =>
                {
                    flow.registered_again = true;
                    return client.find_identity(flow, now);
                }
                code => code?,
            };
            client.request_token(flow, GrantSource::Code { code, verifier }, now)
        });
        true
    }

    // ------------------------------------------------------------------ an assertion

    fn ask_for_assertion(&mut self, flow: &Flow, audience: String) -> StepResult {
        let resource =
            flow.discovered.resource.as_ref().map(ToString::to_string).unwrap_or_default();
        let id = self.actions.next_id();
        self.actions.push(AuthorizationAction::Assert(AssertionRequest { id, audience, resource }));
        Ok(Next::Wait(Step::Assertion(id)))
    }

    pub(super) fn asserted(
        &mut self,
        action: ActionId,
        assertion: Result<&str, ActionFailure>,
        now: Instant,
    ) {
        let Some((flow, step)) = self.take_flow_of(action) else { return };
        self.advance(flow, now, |client, flow| {
            if !matches!(step, Step::Assertion(_)) {
                return Ok(Next::Wait(step));
            }
            let assertion = assertion?.to_string();
            let source = match client.options.grant {
                GrantFlow::Enterprise(_) => GrantSource::Exchange { id_token: assertion },
                _ => GrantSource::Assertion { assertion },
            };
            client.request_token(flow, source, now)
        });
    }
}

// ------------------------------------------------------------------ the first steps: the discovery of the authorization server

impl AuthorizationClient {
    /// Requests the metadata of the server, each time again: it may name another authorization
    /// server than before.
    // MCP 2026-07-28 basic/authorization/index#overview [AUTHC-014]
    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-037]
    fn find_resource(&mut self, flow: &mut Flow) -> StepResult {
        let named = flow.challenge.as_ref().and_then(|it| it.resource_metadata.as_deref());
        // An invalid or forbidden URL is skipped: there are other URLs to try.
        let named = named.filter(|it| {
            named_by_challenge(it, &self.server).is_some_and(|it| self.check_place(&it).is_ok())
        });
        let urls = MetadataUrls::for_resource(self.options.discovery(), &self.server, named);
        self.ask_for_resource(flow, urls)
    }

    fn ask_for_resource(&mut self, flow: &mut Flow, mut urls: MetadataUrls) -> StepResult {
        if let Some(url) = urls.next() {
            self.get(url)?;
            return Ok(Next::Wait(Step::Resource(urls)));
        }
        // A server that fails may have metadata: it is not taken for an old one.
        if let Some(failure) = flow.discovered.missing.take_if(|it| !is_absence(it)) {
            return Err(failure);
        }
        // MCP 2025-03-26 basic/authorization#server-metadata-discovery [AUTHC-007]: a server
        // without protected resource metadata follows that revision.
        match MetadataUrls::for_base(&self.server).next() {
            Some(url) => {
                // MCP 2025-03-26 basic/authorization#server-metadata-discovery-headers [HDR-037]
                let revision = ByteString::from_static(Revision::V2025_03_26.as_str());
                self.get_with(url, [("mcp-protocol-version".into(), revision)])?;
                Ok(Next::Wait(Step::Base))
            }
            None => Err(self.no_base_metadata()),
        }
    }

    fn resource_answered(
        &mut self,
        flow: &mut Flow,
        urls: MetadataUrls,
        fetched: &Fetched,
    ) -> StepResult {
        let of = |fault| AuthorizationFailure::Metadata { url: fetched.place(), fault };
        let metadata = match read_metadata(fetched, ProtectedResourceMetadata::parse) {
            Ok(metadata) => metadata.map_err(of)?,
            Err(failure) => {
                failure.into_iter().for_each(|it| flow.discovered.pass_over(it));
                return self.ask_for_resource(flow, urls);
            }
        };
        flow.discovered.resource = Some(metadata.resource_for(&self.server).map_err(of)?);
        let mut issuers: Vec<String> = metadata.issuers().map_err(of)?.to_vec();
        // The issuer of the current tokens comes first, if the server still names it.
        let known = self.tokens.as_ref().and_then(|tokens| {
            issuers.iter().position(|it| is_same_issuer(it, &tokens.stored.issuer))
        });
        match known {
            Some(at) => issuers[..=at].rotate_right(1),
            None => self.leave_issuer(),
        }
        issuers.truncate(self.options.limits.issuers_max.max(1));
        flow.discovered.issuers = issuers.into_iter();
        flow.discovered.resource_scopes = metadata.scopes_supported;
        self.next_issuer(flow)
    }

    /// Drops the tokens of another authorization server than the current one, which must not get
    /// them. They stay in the store until they are replaced: from them the next process learns
    /// which authorization server a client without a configured issuer belongs to.
    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-037]
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHC-045]
    fn leave_issuer(&mut self) {
        self.tokens = None;
    }

    /// Continues with the next authorization server that the server names.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location [AUTHC-019]
    fn next_issuer(&mut self, flow: &mut Flow) -> StepResult {
        while let Some(issuer) = flow.discovered.issuers.next() {
            match self.places_of(&issuer) {
                Ok(urls) => return self.ask_for_issuer(flow, issuer, urls),
                Err(failure) => drop(flow.discovered.last_failure.get_or_insert(failure)),
            }
        }
        let last_failure = flow.discovered.last_failure.take();
        Err(last_failure.unwrap_or_else(|| self.no_base_metadata()))
    }

    /// Returns the metadata URLs of an issuer if they may be requested.
    fn places_of(&self, issuer: &str) -> Result<MetadataUrls, AuthorizationFailure> {
        let urls = MetadataUrls::for_issuer(self.options.discovery(), issuer)
            .map_err(AuthorizationFailure::Issuer)?;
        if let Some(url) = urls.clone().next() {
            self.check_place(&url)?;
        }
        Ok(urls)
    }

    fn ask_for_issuer(
        &mut self,
        flow: &mut Flow,
        issuer: String,
        mut urls: MetadataUrls,
    ) -> StepResult {
        if let Some(url) = urls.next() {
            self.get(url)?;
            return Ok(Next::Wait(Step::Issuer(issuer, urls)));
        }
        flow.discovered.last_failure.get_or_insert(AuthorizationFailure::NoMetadata { issuer });
        self.next_issuer(flow)
    }

    fn issuer_answered(
        &mut self,
        flow: &mut Flow,
        issuer: String,
        urls: MetadataUrls,
        fetched: &Fetched,
        now: Instant,
    ) -> StepResult {
        let failure = match read_metadata(fetched, AuthorizationServerMetadata::parse) {
            Ok(metadata) => match self.check_issuer(&issuer, metadata, fetched) {
                Ok(metadata) => return self.found_issuer(flow, metadata, now),
                Err(failure) => failure,
            },
            Err(failure) => {
                flow.discovered.last_failure = flow.discovered.last_failure.take().or(failure);
                return self.ask_for_issuer(flow, issuer, urls);
            }
        };
        flow.discovered.last_failure.get_or_insert(failure);
        self.next_issuer(flow)
    }

    fn base_answered(&mut self, flow: &mut Flow, fetched: &Fetched, now: Instant) -> StepResult {
        let read = read_metadata(fetched, AuthorizationServerMetadata::parse);
        let base = base_issuer(&self.server);
        let issuer = match &read {
            Ok(Ok(metadata)) => metadata.issuer.clone(),
            _ => base.clone(),
        };
        if self.tokens.as_ref().is_some_and(|it| !is_same_issuer(&it.stored.issuer, &issuer)) {
            self.leave_issuer();
        }
        flow.discovered.resource = Some(ResourceUri::from_server(&self.server));
        if !is_same_issuer(&issuer, &base) {
            // Metadata of another issuer is not used, but names it, as that of a resource does.
            flow.discovered.issuers = alloc::vec![issuer].into_iter();
            return self.next_issuer(flow);
        }
        match read {
            Ok(metadata) => {
                let metadata = self.check_issuer(&issuer, metadata, fetched)?;
                return self.found_issuer(flow, metadata, now);
            }
            Err(failure) => failure.into_iter().for_each(|it| flow.discovered.pass_over(it)),
        }
        // MCP 2025-03-26 basic/authorization#fallbacks-for-servers-without-metadata-discovery [AUTHC-008]
        let implied = self
            .options
            .implies_endpoints()
            .then(|| AuthorizationServerMetadata::implied_by(&self.server, issuer))
            .flatten();
        let metadata = implied.ok_or_else(|| self.no_base_metadata())?;
        flow.discovered.implied = true;
        self.found_issuer(flow, metadata, now)
    }

    /// Checks the metadata of an issuer.
    fn check_issuer(
        &self,
        issuer: &str,
        metadata: Result<AuthorizationServerMetadata, MetadataFault>,
        fetched: &Fetched,
    ) -> Result<AuthorizationServerMetadata, AuthorizationFailure> {
        let of = |fault| AuthorizationFailure::Metadata { url: fetched.place(), fault };
        let metadata = metadata.map_err(of)?;
        // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery [AUTHC-025]
        metadata.check_issuer(issuer).map_err(of)?;
        // MCP 2026-07-28 auth:oauth-client-credentials#flow-steps [OACC-008]
        metadata.token_endpoint().map_err(of)?;
        if self.options.grant.needs_user() {
            // MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-013]
            metadata.check_pkce().map_err(of)?;
            metadata.authorization_endpoint().map_err(of)?;
        }
        Ok(metadata)
    }

    /// Continues with the authorization server that was found.
    fn found_issuer(
        &mut self,
        flow: &mut Flow,
        metadata: AuthorizationServerMetadata,
        now: Instant,
    ) -> StepResult {
        flow.discovered.metadata = Some(Arc::new(metadata));
        self.find_identity(flow, now)
    }

    fn no_base_metadata(&self) -> AuthorizationFailure {
        AuthorizationFailure::NoMetadata { issuer: base_issuer(&self.server) }
    }
}

impl Discovered {
    /// Records why a URL of the resource's metadata has none. The failure of a server outweighs
    /// absence.
    fn pass_over(&mut self, failure: AuthorizationFailure) {
        let kept = self.missing.as_ref();
        if kept.is_none_or(|kept| is_absence(kept) && !is_absence(&failure)) {
            self.missing = Some(failure);
        }
    }

    /// Adds to a failure at endpoints that no metadata names that they are a guess.
    fn explain(&mut self, failure: AuthorizationFailure) -> AuthorizationFailure {
        let guessed = matches!(
            failure,
            AuthorizationFailure::Status { .. }
                | AuthorizationFailure::Redirected { .. }
                | AuthorizationFailure::Unreachable { .. }
                | AuthorizationFailure::TimedOut(WaitingFor::Response(_) | WaitingFor::User)
        );
        if !self.implied || !guessed {
            return failure;
        }
        let reason = self.missing.take().map(Box::new);
        AuthorizationFailure::Unnamed { reason, failure: Box::new(failure) }
    }
}

/// Whether a server that answers like this has no metadata at the URL.
const fn is_absence(failure: &AuthorizationFailure) -> bool {
    match failure {
        AuthorizationFailure::Status { status, .. } => {
            *status < 500 && !matches!(status, 408 | 429)
        }
        AuthorizationFailure::Metadata { fault, .. } => matches!(fault, MetadataFault::Unrelated),
        AuthorizationFailure::Redirected { .. } => true,
        _ => false,
    }
}

/// Reads metadata, valid or not. Without metadata: why, unless the answer just says so, or is a
/// page for people, which some servers have at every URL.
fn read_metadata<T>(
    fetched: &Fetched,
    parse: impl FnOnce(&[u8]) -> Result<T, MetadataFault>,
) -> Result<Result<T, MetadataFault>, Option<AuthorizationFailure>> {
    if !fetched.is_success() {
        return Err((!matches!(fetched.status, 404 | 410)).then(|| fetched.refusal()));
    }
    if without_mark(&fetched.body).trim_ascii_start().first() != Some(&b'{') {
        return Err(None);
    }
    match parse(&fetched.body) {
        Err(fault @ MetadataFault::Unrelated) => {
            Err(Some(AuthorizationFailure::Metadata { url: fetched.place(), fault }))
        }
        metadata => Ok(metadata),
    }
}
