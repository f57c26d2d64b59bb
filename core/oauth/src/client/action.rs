use alloc::string::String;
use core::fmt;

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
    /// Create a signature: [`AuthorizationClient::handle_signature`](super::AuthorizationClient::handle_signature).
    Sign(SigningRequest),
    /// Get an assertion: [`AuthorizationClient::handle_assertion`](super::AuthorizationClient::handle_assertion).
    Assert(AssertionRequest),
    /// Load the stored credential: [`AuthorizationClient::handle_loaded`](super::AuthorizationClient::handle_loaded). Read it
    /// again each time: another process of the application may have saved a newer one.
    Load(ActionId, CredentialKey),
    /// Lock the stored credential, then load it: wait until no other process or connection holds the
    /// lock, and answer with
    /// [`AuthorizationClient::handle_loaded`](super::AuthorizationClient::handle_loaded). The lock is
    /// held until [`Unlock`](Self::Unlock) or [`Withdraw`](Self::Withdraw) with this id; after an
    /// error it is not held. Loads and saves do not need it. If this client alone uses the store,
    /// perform it like [`Load`](Self::Load).
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

/// A credential to store, as text that only [`AuthorizationClient`](super::AuthorizationClient) interprets.
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
    /// The action failed; the text says why, for the user and without secrets.
    #[error("{0}")]
    Failed(String),
}

impl fmt::Debug for AuthorizationRequest {
    /// Omits the URL: its `state` allows forging the answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, redirect_uri, issuer, .. } = self;
        f.debug_struct("AuthorizationRequest")
            .field("id", id)
            .field("redirect_uri", redirect_uri)
            .field("issuer", issuer)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SigningRequest {
    /// Omits the data to sign.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, key, algorithm, .. } = self;
        f.debug_struct("SigningRequest")
            .field("id", id)
            .field("key", key)
            .field("algorithm", algorithm)
            .finish_non_exhaustive()
    }
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

impl fmt::Debug for Credential {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}
