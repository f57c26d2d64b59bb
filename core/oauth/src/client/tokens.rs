use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::Instant;
use mcp_sansio::http::{ExchangeId, Location, OutgoingRequest};
use mcp_sansio::jsonrpc::RawJson;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::ActionId;
use super::authentication::SigningInput;
use super::credential::StoredTokens;
use super::scopes::Scopes;

/// The current tokens. They are sent only to their servers and to the store of the application;
/// debug output omits them.
// MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-062]
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) stored: StoredTokens,
    /// The number of this token, counted from 1.
    pub(super) number: u64,
    /// When the token should be renewed, in seconds since 1970.
    renew_at: Option<u64>,
}

impl Tokens {
    /// `expires_in` is the lifetime of new tokens in seconds.
    pub(super) fn new(
        stored: StoredTokens,
        number: u64,
        expires_in: Option<u64>,
        renew_before: Duration,
    ) -> Self {
        let half = expires_in.map_or(u64::MAX, |seconds| seconds / 2);
        let ahead = renew_before.as_secs().min(half);
        let renew_at = stored.expires_at.map(|at| at.saturating_sub(ahead));
        Self { stored, number, renew_at }
    }

    /// Whether the token should be renewed at `now`, in seconds since 1970.
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.renew_at.is_some_and(|at| at <= now)
    }

    /// Whether all of these scopes, separated by spaces, were granted.
    pub(super) fn has_scopes(&self, wanted: &str, max: usize) -> bool {
        let granted = Scopes::parse(&self.stored.granted, max);
        match (granted, Scopes::parse(wanted, max)) {
            (Ok(granted), Ok(wanted)) => granted.contains_all(&wanted),
            _ => false,
        }
    }
}

// ------------------------------------------------------------------ the order of tokens that replace each other
// A store may return tokens that this client has replaced, because it could not save their
// successors. A refresh token is often valid once, and an authorization server that sees it again
// may revoke all tokens of the user. Only the order in which tokens replaced each other tells such
// tokens from those that another process of the application has saved since; that they differ
// does not.

/// The most lineages that are remembered. 32, in 2 KiB: each is a sign-in in one run of the
/// application, and those that the store still returns are kept longest.
const LINEAGES_MAX: usize = 32;

/// The position of tokens in the sequence that one sign-in started and every renewal continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// A unique name of the sequence.
    lineage: String,
    number: u64,
}

/// The tokens that a client has had: the latest of each lineage. The last one is current.
#[derive(Debug, Default)]
pub(super) struct Generations(VecDeque<Generation>);

impl Generation {
    /// Returns the first generation of a lineage with a unique name.
    pub(crate) const fn first(lineage: String) -> Self {
        Self { lineage, number: 1 }
    }

    /// Returns the generation that a renewal creates.
    pub(super) fn next(&self) -> Self {
        Self { lineage: self.lineage.clone(), number: self.number.saturating_add(1) }
    }

    /// Names the lineage of tokens that were stored without one, so that it is the same whenever
    /// they are read.
    pub(crate) fn name_after(&mut self, access_token: &str) {
        if self.lineage.is_empty() {
            self.lineage = URL_SAFE_NO_PAD.encode(&Sha256::digest(access_token)[..16]);
        }
    }
}

impl Generations {
    /// Records the tokens that are now current.
    pub(super) fn enter(&mut self, generation: &Generation) {
        if let Some(current) = self.0.back_mut()
            && current.lineage != generation.lineage
        {
            // Other tokens replace these, which are not valid again unless they were renewed.
            *current = current.next();
        }
        self.0.retain(|it| it.lineage != generation.lineage);
        if self.0.len() >= LINEAGES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(generation.clone());
    }

    /// Whether the client has replaced these tokens.
    pub(super) fn has_replaced(&mut self, generation: &Generation) -> bool {
        let Some(at) = self.0.iter().position(|it| it.lineage == generation.lineage) else {
            return false;
        };
        let replaced = generation.number < self.0[at].number;
        // The current lineage stays last.
        if at + 1 < self.0.len()
            && let (Some(seen), Some(current)) = (self.0.remove(at), self.0.pop_back())
        {
            self.0.extend([seen, current]);
        }
        replaced
    }
}

// ------------------------------------------------------------------ waiting

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
    /// There must be another token first than the one that the request was refused with.
    Token,
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
                WaitReason::Proof { .. } | WaitReason::Token => self.0.push(entry),
            }
        }
        taken
    }

    /// Takes one of the requests that wait for another token, if the one with this number is not
    /// the one that it was refused with.
    pub(super) fn take_for_token(&mut self, number: u64) -> Option<Box<RetryableRequest>> {
        let ready = |it: &Entry| matches!(it.until, WaitReason::Token) && it.held.token != number;
        let at = self.0.iter().position(ready)?;
        Some(self.0.remove(at).held)
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
            WaitReason::Flow { .. } | WaitReason::Token => None,
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
            WaitReason::Flow { .. } | WaitReason::Token => None,
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
            WaitReason::Flow { .. } | WaitReason::Token => None,
        };
        self.0.iter().filter_map(deadline).min()
    }
}

// ------------------------------------------------------------------ operations

/// The operation of a request: its method, and the tool, prompt or resource that it names. Requests
/// for the same operation compare equal. A digest, because names can be long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation([u8; 32]);

/// How often each operation caused an authorization because of insufficient scopes, since its last
/// success.
// MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHC-054]: all requests go
// to one resource.
#[derive(Debug, Default)]
pub(super) struct Operations(VecDeque<(Operation, u32)>);

impl Operation {
    /// Reads the operation from the fields, or else from the body. Linear in its length.
    pub(super) fn from_request(request: &OutgoingRequest) -> Self {
        let field = |wanted| request.fields().find(|(name, _)| *name == wanted).map(|it| it.1);
        if let Some(method) = field("mcp-method") {
            return Self::new(method, field("mcp-name").unwrap_or_default());
        }
        // The HTTP client wrote the body, so it is valid JSON.
        let body = core::str::from_utf8(&request.body).ok().filter(|it| it.starts_with('{'));
        let message = RawJson::trusted(body.unwrap_or("{}"));
        let text = |value: Option<RawJson<'_>>| {
            value.and_then(|it| it.to_text().map(|it| it.into_owned()))
        };
        let Some(method) = text(message.get("method")) else {
            return Self::new(request.method, "");
        };
        let params = message.get("params");
        let member = |name| text(params.as_ref().and_then(|params| params.get(name)));
        let name = member("name").or_else(|| member("uri"));
        Self::new(&method, &name.unwrap_or_default())
    }

    fn new(method: &str, name: &str) -> Self {
        let digest = Sha256::new().chain_update(method).chain_update([0]).chain_update(name);
        Self(digest.finalize().into())
    }
}

impl Operations {
    /// Returns the number of authorizations for the operation.
    pub(super) fn count(&self, operation: Operation) -> u32 {
        self.0.iter().find(|it| it.0 == operation).map_or(0, |it| it.1)
    }

    /// Counts another authorization. Keeps at most `max` operations and drops the oldest.
    pub(super) fn add(&mut self, operation: Operation, max: usize) {
        let count = self.count(operation).saturating_add(1);
        self.forget(operation);
        if self.0.len() >= max.max(1) {
            self.0.pop_front();
        }
        self.0.push_back((operation, count));
    }

    /// Removes the operation after a success.
    pub(super) fn forget(&mut self, operation: Operation) {
        self.0.retain(|it| it.0 != operation);
    }
}

// ------------------------------------------------------------------ clock

/// The wall clock, as last reported by the application.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    seconds: u64,
    told: Instant,
}

impl Clock {
    pub(super) const fn new(seconds: u64, told: Instant) -> Self {
        Self { seconds, told }
    }

    /// Returns the seconds since 1970.
    pub(super) const fn unix_time(&self, now: Instant) -> u64 {
        self.seconds.saturating_add(now.saturating_since(self.told).as_secs())
    }
}

#[cfg(test)]
mod generations_tests {
    use alloc::format;

    use super::*;

    fn generation(lineage: &str, number: u64) -> Generation {
        Generation { lineage: lineage.into(), number }
    }

    #[test]
    fn earlier_generations_are_replaced_and_others_are_not() {
        let mut known = Generations::default();
        assert!(!known.has_replaced(&generation("a", 1)));
        known.enter(&generation("a", 3));
        for (lineage, number, replaced) in [("a", 2, true), ("a", 3, false), ("a", 4, false)] {
            assert_eq!(known.has_replaced(&generation(lineage, number)), replaced, "{number}");
        }
        assert!(!known.has_replaced(&generation("b", 1)));
    }

    #[test]
    fn a_sign_in_replaces_the_tokens_of_the_previous_one() {
        let mut known = Generations::default();
        known.enter(&generation("a", 3));
        known.enter(&generation("b", 1));
        assert!(known.has_replaced(&generation("a", 3)));
        assert!(!known.has_replaced(&generation("b", 1)));
        // Another process has renewed them since.
        assert!(!known.has_replaced(&generation("a", 4)));
    }

    #[test]
    fn a_lineage_that_the_store_returns_is_remembered_longest() {
        let mut known = Generations::default();
        known.enter(&generation("stuck", 1));
        for number in 0..3 * LINEAGES_MAX {
            known.enter(&generation(&format!("sign-in {number}"), 1));
            assert!(known.has_replaced(&generation("stuck", 1)), "{number}");
        }
        assert_eq!(known.0.len(), LINEAGES_MAX);
    }

    #[test]
    fn tokens_that_were_stored_without_a_lineage_have_one_by_their_content() {
        let named = |token| {
            let mut generation = Generation::default();
            generation.name_after(token);
            generation
        };
        assert_eq!(named("t1"), named("t1"));
        assert_ne!(named("t1"), named("t2"));
        let mut kept = Generation::first("a".into());
        kept.name_after("t1");
        assert_eq!(kept, generation("a", 1));
    }
}

#[cfg(test)]
mod operations_tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_oldest_operations_are_dropped_first() {
        let operations: Vec<_> = ["a", "b", "c"].map(|it| Operation::new("tools/call", it)).into();
        let mut counts = Operations::default();
        for at in [0, 1, 0, 2] {
            counts.add(operations[at], 2);
        }
        let counted: Vec<_> = operations.iter().map(|it| counts.count(*it)).collect();
        assert_eq!(counted, [2, 0, 1]);
        counts.forget(operations[0]);
        assert_eq!(counts.count(operations[0]), 0);
    }

    #[test]
    fn a_method_and_a_name_are_distinguished() {
        assert_ne!(Operation::new("a", "bc"), Operation::new("ab", "c"));
    }
}
