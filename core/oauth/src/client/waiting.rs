use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::Instant;
use mcp_sansio::http::client::OutgoingRequest;
use mcp_sansio::http::{ExchangeId, Location};

use crate::jwt::SigningInput;

use super::ActionId;
use super::operations::Operation;

/// A request of the HTTP client's that can be sent, and sent again.
#[derive(Debug)]
pub(super) struct RetryableRequest {
    /// With the name that the HTTP client has for it.
    pub(super) request: OutgoingRequest,
    /// The number of the token that it was last sent with; zero: it never was, or without one.
    pub(super) token: u64,
    /// It was refused with 401, and the token was renewed since.
    pub(super) renewed: bool,
    /// It was refused with 401, and there was an authorization since.
    pub(super) authorized: bool,
    /// The nonce that its proof had.
    pub(super) nonce: Option<String>,
    /// Times that it was sent again for a nonce.
    pub(super) nonces: u32,
    /// Authorizations that there were for it, because of scopes.
    pub(super) step_ups: u32,
}

/// Requests that cannot leave yet, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct WaitingRequests(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    held: Box<RetryableRequest>,
    until: WaitReason,
}

/// What a request waits for.
#[derive(Debug)]
pub(super) enum WaitReason {
    /// The end of the flow. It was refused with 401 before, or not.
    Flow { refused: bool },
    /// The signature under its proof.
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

    /// The HTTP client's name for it.
    pub(super) const fn inner(&self) -> ExchangeId {
        self.request.exchange
    }

    pub(super) fn url(&self) -> &Location {
        self.request.url()
    }

    /// What it does, for counting.
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

    /// Takes the request with this name out, and says what it waited for.
    pub(super) fn remove(&mut self, inner: ExchangeId) -> Option<WaitReason> {
        let at = self.0.iter().position(|it| it.held.inner() == inner)?;
        Some(self.0.remove(at).until)
    }

    /// Takes out all that wait for the flow. Linear.
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

    /// Takes out the request whose proof this action signs, and what is signed.
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

    /// The signature that has been due for too long, if there is one.
    pub(super) fn overdue(&self, now: Instant) -> Option<ActionId> {
        self.0.iter().find_map(|it| match it.until {
            WaitReason::Proof { action, deadline, .. } if deadline <= now => Some(action),
            _ => None,
        })
    }

    /// One of the signatures that are waited for.
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
