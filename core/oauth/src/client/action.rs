use alloc::string::String;
use core::fmt;

/// Names an [`Action`], for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub(super) u64);

/// Something that only the application can do. Every one that has an [`ActionId`] is answered once,
/// with the verb that it names, unless it is withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send the user to an address and wait for where they come back:
    /// [`Client::handle_redirect`](super::Client::handle_redirect).
    Authorize(AuthorizationRequest),
    /// Sign something: [`Client::handle_signature`](super::Client::handle_signature).
    Sign(SigningRequest),
    /// Get an assertion: [`Client::handle_assertion`](super::Client::handle_assertion).
    Assert(AssertionRequest),
    /// Look up what was kept: [`Client::handle_loaded`](super::Client::handle_loaded). Each time anew:
    /// another run of the application may have kept something else meanwhile.
    Load(ActionId, CredentialKey),
    /// Keep something in place of what there was, in a safe place.
    Save(CredentialKey, Credential),
    /// Drop what was kept: it is of no use any more.
    Remove(CredentialKey),
    /// Do not go on with an action: nobody waits for its answer.
    Withdraw(ActionId),
}

/// A user is to sign in.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthorizationRequest {
    /// What to answer by.
    pub id: ActionId,
    /// The address to open in the user's browser.
    pub url: String,
    /// Where the user comes back to: the query of that request is the answer.
    pub redirect_uri: String,
    /// Who will ask the user, for a line that says so beforehand.
    pub issuer: String,
}

/// Something to sign with a private key that the application has.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SigningRequest {
    /// What to answer by.
    pub id: ActionId,
    /// Which key to sign with.
    pub key: SigningKey,
    /// The algorithm by its name of RFC 7518.
    pub algorithm: String,
    /// What to sign: the first two parts of a JSON Web Token.
    pub input: String,
}

/// A key that the application has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SigningKey {
    /// That of the client with this id.
    Client(String),
    /// The one that tokens are bound to.
    Dpop,
}

/// An assertion is needed, to be exchanged for a token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssertionRequest {
    /// What to answer by.
    pub id: ActionId,
    /// Whom it must be for: the issuer of the authorization server, or the client id at the
    /// identity provider.
    pub audience: String,
    /// What the token is for.
    pub resource: String,
}

/// What a credential is kept under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CredentialKey {
    /// The tokens for an MCP server, by its URL.
    Tokens(String),
    /// What an authorization server knows this client as, by its issuer.
    Client(String),
    /// The issuer that a registered client was first used with, by the id of the client: no other
    /// one gets its credential. See
    /// [`ClientOptions::registered_trusting_first_issuer`](super::ClientOptions::registered_trusting_first_issuer).
    /// A store that has to make room drops others first: without this the next MCP server chooses
    /// anew.
    Issuer(String),
}

/// A credential to keep, as text that says nothing to anybody but [`Client`](super::Client).
///
/// Whoever reads it can act for the user.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(pub(super) String);

/// Why the application does not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ActionFailure {
    /// The user does not want to.
    #[error("the user declined")]
    Declined,
    /// It cannot be done. Why, in words for the user, without secrets.
    #[error("{0}")]
    Failed(String),
}

impl fmt::Debug for AuthorizationRequest {
    /// Leaves the address out: whoever knows its `state` can forge the answer.
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
    /// Leaves out what is signed.
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
    /// A credential that was kept, as [`as_str`](Self::as_str) gave it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text to keep.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Credential {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}
