use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::Instant;
use mcp_sansio::http::{ExchangeId, Location, OutgoingRequest};

use crate::jwt::SigningInput;

use super::ActionId;
use super::operations::Operation;

/// A request of the HTTP client that can be sent repeatedly.
#[derive(Debug)]
pub(super) struct RetryableRequest {
    /// The request, with its id at the HTTP client.
    pub(super) request: OutgoingRequest,
    /// The number of the token that it was last sent with; zero if it was not sent or had no token.
    pub(super) token: u64,
    /// Whether the token was renewed after the request was refused with 401.
    pub(super) renewed: bool,
    /// Whether there was an authorization after the request was refused with 401.
    pub(super) authorized: bool,
    /// The nonce of its proof.
    pub(super) nonce: Option<String>,
    /// How often the request was repeated for a new nonce.
    pub(super) nonces: u32,
    /// The number of authorizations for it because of insufficient scopes.
    pub(super) step_ups: u32,
}

/// The requests that cannot be sent yet, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct WaitingRequests(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    held: Box<RetryableRequest>,
    until: WaitReason,
}

/// The reason why a request waits.
#[derive(Debug)]
pub(super) enum WaitReason {
    /// The flow must end first. `refused`: the request was refused with 401 before.
    Flow { refused: bool },
    /// Its proof must be signed first.
    Proof { action: ActionId, input: SigningInput, deadline: Instant },
}

impl RetryableRequest {
    pub(super) const fn new(request: OutgoingRequest) -> Self {
        Self {
            request,
            token: 0,
            renewed: false,
            authorized: false,
            nonce: None,
            nonces: 0,
            step_ups: 0,
        }
    }

    /// Returns the HTTP client's id of the request.
    pub(super) const fn inner(&self) -> ExchangeId {
        self.request.exchange
    }

    pub(super) fn url(&self) -> &Location {
        self.request.url()
    }

    /// Returns the operation of the request, for counting.
    pub(super) fn operation(&self) -> Operation {
        Operation::from_request(&self.request)
    }
}

impl WaitingRequests {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, held: Box<RetryableRequest>, until: WaitReason) {
        self.0.push(Entry { held, until });
    }

    /// Removes the request with this id and returns its reason.
    pub(super) fn remove(&mut self, inner: ExchangeId) -> Option<WaitReason> {
        let at = self.0.iter().position(|it| it.held.inner() == inner)?;
        Some(self.0.remove(at).until)
    }

    /// Takes all requests that wait for the flow. Linear.
    pub(super) fn take_for_flow(&mut self) -> Vec<(Box<RetryableRequest>, bool)> {
        let all = core::mem::take(&mut self.0);
        let mut taken = Vec::new();
        for entry in all {
            match entry.until {
                WaitReason::Flow { refused } => taken.push((entry.held, refused)),
                WaitReason::Proof { .. } => self.0.push(entry),
            }
        }
        taken
    }

    /// Takes the request whose proof this action signs, with the signed data.
    pub(super) fn take_for_proof(
        &mut self,
        answered: ActionId,
    ) -> Option<(Box<RetryableRequest>, SigningInput)> {
        let is_it =
            |it: &Entry| matches!(it.until, WaitReason::Proof { action, .. } if action == answered);
        let at = self.0.iter().position(is_it)?;
        let Entry { held, until } = self.0.remove(at);
        match until {
            WaitReason::Proof { input, .. } => Some((held, input)),
            WaitReason::Flow { .. } => None,
        }
    }

    /// Returns a signature that is overdue, if any.
    pub(super) fn overdue(&self, now: Instant) -> Option<ActionId> {
        self.0.iter().find_map(|it| match it.until {
            WaitReason::Proof { action, deadline, .. } if deadline <= now => Some(action),
            _ => None,
        })
    }

    /// Returns one of the pending signatures.
    pub(super) fn next_proof(&self) -> Option<ActionId> {
        self.0.iter().find_map(|it| match it.until {
            WaitReason::Proof { action, .. } => Some(action),
            WaitReason::Flow { .. } => None,
        })
    }

    /// Whether a request waits for this signature.
    pub(super) fn proves(&self, answered: ActionId) -> bool {
        self.0
            .iter()
            .any(|it| matches!(it.until, WaitReason::Proof { action, .. } if action == answered))
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let deadline = |it: &Entry| match it.until {
            WaitReason::Proof { deadline, .. } => Some(deadline),
            WaitReason::Flow { .. } => None,
        };
        self.0.iter().filter_map(deadline).min()
    }
}
