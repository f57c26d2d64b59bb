//! The flow that gets a token: a sequence of steps, each waiting for one input.

mod authorization;
mod discovery;
mod identity;
mod stored;
mod token;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::{self, Vec};

use authorization::SignIn;
use identity::{Identity, PendingRegistration};
use mcp_sansio::Instant;
use mcp_sansio_sync::Arc;
use token::TokenStep;

use crate::endpoint::is_secure;
use crate::scopes::Scopes;
use crate::{AuthorizationServerMetadata, BearerChallenge, MetadataUrls, ResourceUri};

use super::fetch::Fetched;
use super::{
    ActionFailure, ActionId, AuthorizationClient, AuthorizationEvent, AuthorizationFailure,
    WaitingFor,
};

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
    /// Why the last issuer could not be used.
    last_failure: Option<AuthorizationFailure>,
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
            Goal::Replace | Goal::Authorize { .. } => self.find_resource(flow),
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

    pub(super) fn fetch_failed(&mut self, failure: AuthorizationFailure, now: Instant) {
        if let Some(flow) = self.flow.take() {
            self.advance(flow, now, |_, _| Err(failure));
        }
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
