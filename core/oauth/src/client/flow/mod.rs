//! How a token is come by: one step after the other, each waiting for one thing.

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
use super::{ActionFailure, ActionId, AuthorizationFailure, Client, Event, WaitingFor};

/// An attempt to come by a token.
#[derive(Debug)]
pub(super) struct Flow {
    goal: Goal,
    /// What the server said that wants a token.
    challenge: Option<BearerChallenge>,
    step: Step,
    deadline: Instant,
    discovered: Discovered,
    /// A registration was of no use, and there is a new one.
    registered_again: bool,
}

/// What a flow is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// To find what was kept. `then`: and to get a token if there is none.
    Load { then: bool },
    /// To renew a token before it ends. `then`: and to get one if that cannot be.
    Renew { then: bool },
    /// To get a token ahead of the end of the one that there is.
    Replace,
    /// To get a token as there is none that the server takes.
    Authorize {
        /// Whether the refresh token may be tried.
        may_renew: bool,
    },
}

impl Goal {
    /// Whether a token is as good that comes without a grant.
    const fn may_renew(self) -> bool {
        matches!(self, Self::Renew { .. } | Self::Replace | Self::Authorize { may_renew: true })
    }
}

/// What was found out so far.
#[derive(Debug, Default)]
struct Discovered {
    resource: Option<ResourceUri>,
    /// The scopes that the metadata of the resource names.
    resource_scopes: Option<Vec<String>>,
    /// Issuers that are still to be tried.
    issuers: vec::IntoIter<String>,
    /// Why the last one was of no use.
    last_failure: Option<AuthorizationFailure>,
    metadata: Option<Arc<AuthorizationServerMetadata>>,
    identity: Option<Arc<Identity>>,
    /// What is asked for.
    scopes: Scopes,
}

/// What a flow waits for.
#[derive(Debug)]
enum Step {
    /// Nothing: it has not begun.
    Begin,
    /// What was kept of tokens.
    LoadTokens(ActionId),
    /// The metadata of the resource.
    Resource(MetadataUrls),
    /// The metadata of this issuer.
    Issuer(String, MetadataUrls),
    /// The metadata of the server as its own authorization server.
    Base,
    /// What was kept of the client.
    LoadClient(ActionId),
    /// The issuer that the registered client at this place was used with before.
    LoadIssuer(ActionId, usize),
    /// The answer to a registration.
    Registration(Box<PendingRegistration>),
    /// The user.
    SignIn(Box<SignIn>),
    /// An assertion.
    Assertion(ActionId),
    /// A token.
    Token(Box<TokenStep>),
}

/// Where a step leads.
enum Next {
    /// To the next one, which waits for something.
    Wait(Step),
    /// To the end.
    Done(Outcome),
}

/// How a flow ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// What was kept is there, if anything was.
    Loaded,
    /// There is a token by means of a refresh token.
    Renewed,
    /// There is a token by means of a grant.
    Authorized,
    /// There is no other token than before.
    Unchanged,
}

type StepResult = Result<Next, AuthorizationFailure>;

impl Client {
    /// Starts what has to be done before a request may leave.
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

    /// How the token is to be replaced, if it is about to end. `then`: by all means.
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

    /// Starts a flow. There is none yet.
    pub(super) fn start(&mut self, goal: Goal, challenge: Option<BearerChallenge>, now: Instant) {
        let flow = Flow {
            goal,
            challenge,
            step: Step::Begin,
            deadline: now,
            discovered: Discovered::default(),
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
            // Another run of the application may have renewed the token meanwhile: its refresh token
            // is good for one time.
            goal if goal.may_renew() && self.tokens.is_some() => Ok(self.load_tokens()),
            Goal::Renew { .. } => self.renew(flow, now),
            Goal::Replace | Goal::Authorize { .. } => self.find_resource(flow),
        }
    }

    /// Goes a step and sees to what comes of it.
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
            Ok(Next::Done(outcome)) => self.succeeded(&flow, outcome, now),
            Err(failure) => self.failed(&flow, failure, now),
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

    // ------------------------------------------------------------------ what comes

    /// Another exchange took the place of the one that is waited for.
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
            Step::Registration(step) => client.registered(flow, &step, &fetched, now),
            Step::Token(step) => client.token_answered(flow, step, &fetched, now),
            // These wait for no response.
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

    /// When the flow has waited for long enough.
    pub(super) fn flow_deadline(&self) -> Option<Instant> {
        self.flow.as_ref().map(|flow| flow.deadline)
    }

    /// What the flow waits for did not come in time.
    pub(super) fn flow_timed_out(&mut self, now: Instant) {
        let Some(flow) = self.flow.take() else { return };
        let awaited = match (&flow.step, self.fetching()) {
            (Step::SignIn(_), _) => WaitingFor::User,
            (_, Some(url)) => WaitingFor::Response(url),
            _ => WaitingFor::Application,
        };
        self.stop_waiting(&flow);
        if let Step::LoadTokens(_) = flow.step {
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

    /// Gives the flow up: what waits for it is refused.
    pub(super) fn stop(&mut self) {
        let Some(flow) = self.flow.take() else { return };
        self.stop_waiting(&flow);
        let failure = Arc::new(AuthorizationFailure::Closed);
        self.events.push_back(Event::Failed(Arc::clone(&failure)));
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
            self.events.push_back(Event::Authorized { issuer, scope });
        }
        for (mut held, refused) in self.waiting.take_for_flow() {
            held.renewed |= refused && outcome == Outcome::Renewed;
            held.authorized |= refused && outcome == Outcome::Authorized;
            self.events.push_back(Event::Resumed(held.inner()));
            self.send_authorized(held, now);
        }
    }

    fn failed(&mut self, flow: &Flow, failure: AuthorizationFailure, now: Instant) {
        let failure = Arc::new(failure);
        self.events.push_back(Event::Failed(Arc::clone(&failure)));
        // The token may still be good.
        let ahead = matches!(flow.goal, Goal::Renew { .. } | Goal::Replace);
        if ahead {
            self.renewal_not_before = now + self.options.timeouts.renewal_pause;
        }
        for (held, refused) in self.waiting.take_for_flow() {
            if ahead && !refused {
                self.events.push_back(Event::Resumed(held.inner()));
                self.send_authorized(held, now);
            } else {
                self.refuse(held.inner(), Arc::clone(&failure));
            }
        }
    }
}

impl Step {
    /// The action whose answer it waits for.
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
