use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use core::fmt;

use mcp_sansio::Instant;
use mcp_sansio::http::{ExchangeFailure, ExchangeId, Location};
use mcp_sansio_sync::Arc;

use super::AuthorizationClient;
use super::authentication::SigningInput;
use super::proof::ProvenRequest;
use crate::{AnswerFault, MetadataFault, ResponseFault, UrlFault};

/// The id of an [`AuthorizationAction`], for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub(super) u64);

/// A request that only the application can fulfil. Every action with an [`ActionId`] must be
/// answered once, with the method that it names, unless it is withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizationAction {
    /// Send the user to a URL and wait for the redirect:
    /// [`AuthorizationClient::handle_redirect`](super::AuthorizationClient::handle_redirect).
    Authorize(AuthorizationRequest),
    /// Create a signature:
    /// [`AuthorizationClient::handle_signature`](super::AuthorizationClient::handle_signature).
    Sign(SigningRequest),
    /// Get an assertion:
    /// [`AuthorizationClient::handle_assertion`](super::AuthorizationClient::handle_assertion).
    Assert(AssertionRequest),
    /// Load the stored credential:
    /// [`AuthorizationClient::handle_loaded`](super::AuthorizationClient::handle_loaded). Read it
    /// again each time: another process of the application may have saved a newer one.
    Load(ActionId, CredentialKey),
    /// Lock the stored credential, then load it: wait until no other process or connection holds
    /// the lock, and answer with
    /// [`AuthorizationClient::handle_loaded`](super::AuthorizationClient::handle_loaded). The lock
    /// is held until [`Unlock`](Self::Unlock) or [`Withdraw`](Self::Withdraw) with this id; after
    /// an error it is not held. Loads and saves do not need it. If this client alone uses the
    /// store, perform it like [`Load`](Self::Load).
    Lock(ActionId, CredentialKey),
    /// Release the lock of this action, after the earlier saves are done.
    Unlock(ActionId),
    /// Save a credential in a safe place, replacing the previous one.
    Save(CredentialKey, Credential),
    /// Remove a stored credential, which is no longer valid.
    Remove(CredentialKey),
    /// Cancel an action whose answer is no longer needed. A [`Lock`](Self::Lock) is released.
    Withdraw(ActionId),
}

/// A request to sign in the user.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthorizationRequest {
    /// The id for the answer.
    pub id: ActionId,
    /// The URL to open in the user's browser.
    pub url: String,
    /// The redirect URI: the query of the request to it is the answer.
    pub redirect_uri: String,
    /// The issuer that will ask the user, to be shown to the user beforehand.
    pub issuer: String,
}

/// A request to sign data with a private key of the application.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SigningRequest {
    /// The id for the answer.
    pub id: ActionId,
    /// The key to sign with.
    pub key: SigningKey,
    /// The name of the algorithm in RFC 7518.
    pub algorithm: String,
    /// The data to sign: the first two parts of a JSON Web Token.
    pub input: String,
}

/// A private key of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SigningKey {
    /// The key of the client with this id.
    Client(String),
    /// The key that tokens are bound to.
    Dpop,
}

/// A request for an assertion, to be exchanged for a token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssertionRequest {
    /// The id for the answer.
    pub id: ActionId,
    /// The audience of the assertion: the issuer of the authorization server, or the client id at
    /// the identity provider.
    pub audience: String,
    /// The resource that the token is for.
    pub resource: String,
}

/// The key of a stored credential.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CredentialKey {
    /// The tokens for an MCP server, by its URL.
    Tokens(String),
    /// The client's registration at an authorization server, by its issuer.
    Client(String),
    /// The issuer that a registered client was first used with, by the id of the client: no other
    /// issuer gets its credential. See
    /// [`AuthorizationOptions::registered_trusting_first_issuer`](super::AuthorizationOptions::registered_trusting_first_issuer).
    /// A store that needs room evicts other credentials first: without this one the next MCP server
    /// chooses the issuer.
    Issuer(String),
}

/// A credential to store, as text that only [`AuthorizationClient`] interprets.
///
/// A reader of the text can act for the user.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(pub(super) String);

/// Why the application did not perform an action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ActionFailure {
    /// The user declined.
    #[error("the user declined")]
    Declined,
    /// The user did not come back in time. An authorization server that no longer knows the client
    /// shows an error and does not redirect, so a stored registration is not used again.
    #[error("the user did not complete signing in within the time limit")]
    TimedOut,
    /// The action failed; the text says why, for the user and without secrets.
    #[error("{0}")]
    Failed(String),
}

mcp_sansio::partial_debug! {
    /// Omits the URL: its `state` allows forging the answer.
    impl Debug for AuthorizationRequest { id, redirect_uri, issuer, .. }
}

mcp_sansio::partial_debug! {
    /// Omits the data to sign.
    impl Debug for SigningRequest { id, key, algorithm, .. }
}

impl Credential {
    /// Creates a stored credential from the text of [`as_str`](Self::as_str).
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text to store.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

mcp_sansio::partial_debug! {
    /// Omits the secret.
    impl Debug for Credential(..)
}

// ------------------------------------------------------------------ actions

/// The queue of actions for the application.
#[derive(Debug, Default)]
pub(super) struct ActionQueue {
    queue: VecDeque<AuthorizationAction>,
    last: u64,
}

impl ActionQueue {
    /// Returns the id for the next action.
    pub(super) const fn next_id(&mut self) -> ActionId {
        self.last += 1;
        ActionId(self.last)
    }

    pub(super) fn push(&mut self, action: AuthorizationAction) {
        self.queue.push_back(action);
    }

    pub(super) fn pop(&mut self) -> Option<AuthorizationAction> {
        self.queue.pop_front()
    }

    /// Withdraws an action whose answer is no longer needed.
    pub(super) fn withdraw(&mut self, id: ActionId) {
        match self.queue.iter().position(|it| it.id() == Some(id)) {
            Some(at) => drop(self.queue.remove(at)),
            None => self.queue.push_back(AuthorizationAction::Withdraw(id)),
        }
    }
}

impl AuthorizationAction {
    /// Returns the id for the answer.
    const fn id(&self) -> Option<ActionId> {
        match self {
            Self::Authorize(request) => Some(request.id),
            Self::Sign(request) => Some(request.id),
            Self::Assert(request) => Some(request.id),
            Self::Load(id, _) | Self::Lock(id, _) => Some(*id),
            Self::Save(..) | Self::Remove(_) | Self::Unlock(_) | Self::Withdraw(_) => None,
        }
    }
}

// ------------------------------------------------------------------ event

/// An event of the authorization, in order of occurrence.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AuthorizationEvent {
    /// A request waits for a token: pause its timeout.
    Paused(ExchangeId),
    /// A waiting request was sent: resume its timeout.
    Resumed(ExchangeId),
    /// A request got no token, after waiting or at once. It has ended: report that to the HTTP
    /// client with [`http::Client::refuse`](mcp_sansio::http::Client::refuse). No further input for
    /// it follows.
    Refused(ExchangeId, Arc<AuthorizationFailure>),
    /// The requested authorization succeeded.
    Authorized {
        /// The issuer of the token.
        issuer: String,
        /// The granted scopes, separated by spaces, if known.
        scope: Option<String>,
    },
    /// The requested authorization failed. It is not retried automatically.
    Failed(Arc<AuthorizationFailure>),
}

// ------------------------------------------------------------------ failure

/// Why a client gets no token. URLs are shown without their queries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizationFailure {
    /// The MCP server is neither `https` nor on this machine: a token sent to it can be read in
    /// transit.
    #[error("the server is neither `https` nor on a loopback address; no token is sent to it")]
    Insecure,
    /// A metadata document must not be used. Its author's error.
    #[error("{url}: {fault}")]
    Metadata {
        /// The URL of the document.
        url: String,
        /// The fault.
        fault: MetadataFault,
    },
    /// A public MCP server, or its authorization server, names an address on this machine or in a
    /// private network: see
    /// [`AuthorizationOptions::internal_addresses`](super::AuthorizationOptions::internal_addresses).
    #[error(
        "a public server refers the client to {url}, which is on this machine or in a private network"
    )]
    Internal {
        /// The URL that the server named.
        url: String,
    },
    /// The MCP server names no authorization server, and its own endpoints, where 2025-03-26 has
    /// them in that case, do not work.
    #[error(
        "the server names no authorization server{}; at its own endpoints, as 2025-03-26 has them: \
         {failure}",
        After(.reason.as_deref())
    )]
    Unnamed {
        /// Why the metadata could not be read, if the server did not just lack it.
        reason: Option<Box<Self>>,
        /// How the authorization failed there.
        failure: Box<Self>,
    },
    /// The MCP server names an invalid issuer.
    #[error("the issuer is not usable: {0}")]
    Issuer(UrlFault),
    /// The issuer has no metadata at any of the well-known URLs.
    #[error("no metadata found for the authorization server {issuer}")]
    NoMetadata {
        /// The issuer.
        issuer: String,
    },
    /// A server cannot be reached.
    #[error("{url} cannot be reached")]
    Unreachable {
        /// The URL.
        url: String,
        /// How the attempt failed.
        failure: ExchangeFailure,
    },
    /// A server answers with an error status.
    #[error("{url} answers with status {status}{}", OptionalDetail(.body.as_deref()))]
    Status {
        /// The URL.
        url: String,
        /// The status code.
        status: u16,
        /// The start of the body, if it refuses a form and is text: see
        /// [`TransportFailure::excerpt`](mcp_sansio::peer::TransportFailure::excerpt). It contains
        /// no secrets of the request.
        body: Option<Box<str>>,
    },
    /// A server redirects to a place that the client does not follow: another origin, a status that
    /// would change the method, or one redirect too many.
    #[error("{url} redirects to `{target}`, which is not followed")]
    Redirected {
        /// The URL.
        url: String,
        /// The target, as far as it could be read.
        target: String,
    },
    /// A response has a content encoding, and the client asked for none.
    #[error("the response from {url} is not valid: {fault}")]
    Encoded {
        /// The URL of the response.
        url: String,
        /// The fault, which names the encoding.
        fault: &'static str,
    },
    /// A response is longer than
    /// [`AuthorizationLimits::document_bytes_max`](super::AuthorizationLimits::document_bytes_max).
    /// The error of its sender.
    #[error("the response from {url} is too long")]
    TooLong {
        /// The URL of the response.
        url: String,
    },
    /// The token endpoint issues no token.
    #[error("{url}: {fault}")]
    Token {
        /// The token endpoint.
        url: String,
        /// The fault of its answer.
        fault: AnswerFault,
    },
    /// The authorization server does not register the client. If it refuses the redirect URI, check
    /// the [`ApplicationType`](super::ApplicationType), or register the client manually.
    #[error("{url}: {fault}; if it does not register this client, configure a client id for it")]
    Registration {
        /// The registration endpoint.
        url: String,
        /// The fault of its answer.
        fault: AnswerFault,
    },
    /// The client must not register with its redirect URI.
    #[error("the redirect URI is not usable: {0}")]
    RedirectUri(UrlFault),
    /// The server requires more scopes than
    /// [`AuthorizationLimits::scopes_max`](super::AuthorizationLimits::scopes_max). Requesting only
    /// some of them would be a guess.
    #[error("more than {max} scopes")]
    Scopes {
        /// The limit.
        max: usize,
    },
    /// The authorization server does not know the client: configure a registered client for this
    /// issuer, the metadata document of the client, or the metadata to register with.
    #[error(
        "the authorization server {issuer} does not know this client: configure a client id for it"
    )]
    NoIdentity {
        /// The authorization server.
        issuer: String,
    },
    /// The registered client belongs to another authorization server than the one that the MCP
    /// server names now. Either the MCP server has moved to another one, or it is an attack.
    #[error("the client `{client_id}` is registered elsewhere, not at {issuer}")]
    RegisteredElsewhere {
        /// The authorization server that the MCP server names.
        issuer: String,
        /// The client.
        client_id: String,
    },
    /// The client cannot authenticate at the authorization server.
    #[error("{issuer}: {reason}")]
    ClientAuthentication {
        /// The authorization server.
        issuer: String,
        /// Why.
        reason: &'static str,
    },
    /// The authorization response is invalid or refuses the request.
    #[error("{0}")]
    Response(#[from] ResponseFault),
    /// The application did not perform an action.
    #[error("{0}")]
    Application(#[from] ActionFailure),
    /// The server does not accept the token that was just issued.
    #[error("the server does not accept the new token{}", OptionalDetail(.reason.as_deref()))]
    NotAccepted {
        /// The description of the error in the server's challenge, without the token.
        reason: Option<Box<str>>,
    },
    /// The server requires more scopes for a request than a new token has, after all attempts.
    #[error(
        "the scopes of the token do not suffice{}{}",
        OptionalDetail(.scope.as_deref()),
        OptionalDetail(.description.as_deref())
    )]
    InsufficientScope {
        /// The required scopes, separated by spaces, if the server names them.
        scope: Option<String>,
        /// The description of the server, for developers: an
        /// [excerpt](mcp_sansio::peer::TransportFailure::excerpt).
        description: Option<Box<str>>,
    },
    /// A timeout expired: see [`ClientTimeouts`](super::ClientTimeouts).
    #[error("timed out waiting for {0}")]
    TimedOut(WaitingFor),
    /// More requests wait for a token than
    /// [`AuthorizationLimits::waiting_max`](super::AuthorizationLimits::waiting_max).
    #[error("too many requests wait for a token")]
    TooManyWaiting,
    /// The client was closed, or the user signed out.
    #[error("the authorization was cancelled")]
    Closed,
}

/// The subject of a timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitingFor {
    /// A response from this URL.
    Response(String),
    /// The user, who was sent to sign in.
    User,
    /// An answer of the application.
    Application,
}

impl fmt::Display for WaitingFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(url) => f.write_str(url),
            Self::User => f.write_str("the user"),
            Self::Application => f.write_str("the application"),
        }
    }
}

/// An optional reason, in parentheses.
struct After<'a>(Option<&'a AuthorizationFailure>);

impl fmt::Display for After<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}

/// An optional text, shown after a colon.
struct OptionalDetail<'a>(Option<&'a str>);

impl fmt::Display for OptionalDetail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |words| write!(f, ": {words}"))
    }
}

// ------------------------------------------------------------------ signatures that the application is asked for

impl AuthorizationClient {
    /// Requests the proof that a request's sender has the key; `None` without a key. `token` is the
    /// token in the request's `Authorization`.
    pub(super) fn ask_for_proof(
        &mut self,
        method: &str,
        url: &Location,
        token: Option<&str>,
        now: Instant,
    ) -> Option<(ActionId, SigningInput)> {
        let key = self.options.dpop.as_ref()?;
        let jti = self.entropy.jti();
        let input = key.proof(&ProvenRequest {
            method,
            url,
            access_token: token,
            nonce: self.nonces.get(url),
            jti: &jti,
            unix_time: self.clock.unix_time(now),
        });
        let algorithm = String::from(key.algorithm());
        let action = self.ask_for_signature(SigningKey::Dpop, algorithm, &input);
        Some((action, input))
    }

    pub(super) fn ask_for_signature(
        &mut self,
        key: SigningKey,
        algorithm: String,
        input: &SigningInput,
    ) -> ActionId {
        let id = self.actions.next_id();
        let input = input.as_str().into();
        self.actions.push(AuthorizationAction::Sign(SigningRequest { id, key, algorithm, input }));
        id
    }
}
