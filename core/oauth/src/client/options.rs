use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::Revision;
use mcp_sansio::http::{InvalidUrl, Location};

use crate::client_document::check_client_id;
use crate::dpop::ProofKey;
use crate::endpoint::is_secure;
use crate::{
    InvalidClientDocument, InvalidDpopKey, InvalidEndpoint, InvalidIssuer, InvalidRedirectUri,
    MetadataUrls, check_redirect_uri,
};

use super::{ClientLimits, ClientTimeouts};

/// How a client gets tokens, and as whom.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    pub(super) grant: GrantFlow,
    pub(super) registered: Vec<RegisteredClient>,
    pub(super) metadata_document: Option<(String, ClientSecret)>,
    pub(super) registration: Option<ClientMetadata>,
    pub(super) dpop: Option<ProofKey>,
    pub(super) bound_only: bool,
    pub(super) internal_addresses: bool,
    pub(super) scopes: Vec<String>,
    pub(super) offline_access: bool,
    pub(super) revision: Revision,
    pub(super) limits: ClientLimits,
    pub(super) timeouts: ClientTimeouts,
}

/// An option is not usable. The application's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOption {
    /// The redirect URI is not usable.
    #[error("{0}")]
    RedirectUri(#[from] InvalidRedirectUri),
    /// The URL of the client's metadata is none.
    #[error("the URL of the client's metadata is not usable: {0}")]
    MetadataUrl(InvalidUrl),
    /// The client's metadata cannot be at that URL.
    #[error("{0}")]
    MetadataDocument(#[from] InvalidClientDocument),
    /// A client that is known by its metadata has a password: whichever authorization server it
    /// comes to would get it.
    #[error("a client that is known by the URL of its metadata cannot have a password")]
    SharedPassword,
    /// The key to bind tokens to is none.
    #[error("{0}")]
    Dpop(#[from] InvalidDpopKey),
    /// An issuer is none.
    #[error("{0}")]
    Issuer(#[from] InvalidIssuer),
    /// A registered client has a credential and no issuer: whichever authorization server the MCP
    /// server names would get it. Name the issuer, or say with
    /// [`registered_trusting_first_issuer`](ClientOptions::registered_trusting_first_issuer) that
    /// the MCP server is trusted to name it.
    #[error(
        "the client `{client_id}` has a credential but no issuer that it is for: name the issuer in \
         `RegisteredClient::issuer`, or let the MCP server choose it with \
         `ClientOptions::registered_trusting_first_issuer`"
    )]
    NoIssuer {
        /// The client.
        client_id: String,
    },
    /// The token endpoint of the identity provider is neither `https` nor of this machine.
    #[error("the token endpoint of the identity provider is not usable: {0}")]
    TokenEndpoint(InvalidEndpoint),
    /// A scope is empty, or has a character that scopes cannot have.
    #[error("`{0}` is no scope")]
    Scope(String),
}

/// What a token is asked for with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum GrantFlow {
    /// A user signs in with a browser and comes back to this redirect URI.
    AuthorizationCode {
        /// Where the authorization server sends the user afterwards.
        redirect_uri: String,
    },
    /// The client acts on its own behalf.
    ClientCredentials,
    /// The client shows an assertion that somebody else has signed (RFC 7523): a workload its
    /// identity. The application is asked for one as [`Action::Assert`](super::Action::Assert).
    Assertion,
    /// The client exchanges the user's ID token at the identity provider of the enterprise for a
    /// grant (ID-JAG) that the authorization server takes as an assertion. The application is asked
    /// for the ID token as [`Action::Assert`](super::Action::Assert).
    Enterprise(IdentityProvider),
}

impl GrantFlow {
    /// Whether a person has to do something for it.
    pub(super) const fn needs_user(&self) -> bool {
        matches!(self, Self::AuthorizationCode { .. })
    }

    /// The redirect URI, where there is one.
    pub(super) fn redirect_uri(&self) -> Option<&str> {
        match self {
            Self::AuthorizationCode { redirect_uri } => Some(redirect_uri),
            _ => None,
        }
    }
}

impl ClientOptions {
    const fn with_grant(grant: GrantFlow) -> Self {
        Self {
            grant,
            registered: Vec::new(),
            metadata_document: None,
            registration: None,
            dpop: None,
            bound_only: false,
            internal_addresses: false,
            scopes: Vec::new(),
            offline_access: false,
            revision: Revision::LATEST,
            limits: ClientLimits::DEFAULT,
            timeouts: ClientTimeouts::DEFAULT,
        }
    }

    /// A user signs in with a browser and comes back to `redirect_uri`, which is sent as it is
    /// written here.
    ///
    /// # Errors
    ///
    /// No application may have this redirect URI: see [`InvalidRedirectUri`].
    pub fn code(redirect_uri: impl Into<String>) -> Result<Self, InvalidOption> {
        let redirect_uri = redirect_uri.into();
        // Native applications may have all that others may. What the application registers as is
        // checked when it does.
        check_redirect_uri(&redirect_uri, ApplicationType::Native)?;
        Ok(Self::with_grant(GrantFlow::AuthorizationCode { redirect_uri }))
    }

    /// The client acts on its own behalf.
    #[must_use]
    pub const fn client_credentials() -> Self {
        Self::with_grant(GrantFlow::ClientCredentials)
    }

    /// The client shows an assertion that somebody else has signed.
    #[must_use]
    pub const fn assertion() -> Self {
        Self::with_grant(GrantFlow::Assertion)
    }

    /// The client shows what the identity provider of an enterprise says of its user.
    ///
    /// # Errors
    ///
    /// The token endpoint of the provider is neither `https` nor of this machine.
    pub fn enterprise(provider: IdentityProvider) -> Result<Self, InvalidOption> {
        if !is_secure(&provider.token_endpoint) {
            return Err(InvalidOption::TokenEndpoint(InvalidEndpoint::Insecure));
        }
        Ok(Self::with_grant(GrantFlow::Enterprise(provider)))
    }

    /// Adds a client that an authorization server knows already. These come before every other way
    /// to be known.
    ///
    /// # Errors
    ///
    /// [`InvalidOption::Issuer`]: its issuer is none. [`InvalidOption::NoIssuer`]: it has no issuer,
    /// but a password or a private key, or the grant shows an assertion for it.
    // MCP 2026-07-28 basic/authorization/client-registration#pre-registration [AUTHC-032]
    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036] [AUTHC-037]:
    // a credential without an issuer would be bound by whoever asks for it first.
    pub fn registered(self, client: RegisteredClient) -> Result<Self, InvalidOption> {
        if client.issuer.is_none() && self.shows_credential(&client) {
            return Err(InvalidOption::NoIssuer { client_id: client.client_id });
        }
        self.registered_trusting_first_issuer(client)
    }

    /// Adds a registered client with a credential whose issuer is not known beforehand: the first
    /// authorization server that an MCP server names for it gets the credential.
    ///
    /// The risk: an MCP server that is malicious, or that was taken over before this client met it,
    /// names an authorization server of its own and is shown the password, or an assertion. Use
    /// it only where the URL of the MCP server is trusted as much as the credential is worth, and
    /// [`registered`](Self::registered) with an issuer everywhere else.
    ///
    /// The choice is made once: it is saved under [`CredentialKey::Issuer`](super::CredentialKey)
    /// before the credential leaves, and from then on no other authorization server gets the
    /// credential, whichever MCP server names it. Keep it in a store that outlives the process: in
    /// memory it lasts as long as the process. Where the store fails to load it, the authorization
    /// fails.
    ///
    /// # Errors
    ///
    /// [`InvalidOption::Issuer`]: its issuer is none.
    pub fn registered_trusting_first_issuer(
        mut self,
        client: RegisteredClient,
    ) -> Result<Self, InvalidOption> {
        if let Some(issuer) = &client.issuer {
            MetadataUrls::for_issuer(Revision::LATEST, issuer)?;
        }
        self.registered.push(client);
        Ok(self)
    }

    /// Whether an authorization server that gets a request for a token as this client is shown
    /// something that it could use elsewhere.
    pub(super) fn shows_credential(&self, client: &RegisteredClient) -> bool {
        client.secret != ClientSecret::None
            || matches!(self.grant, GrantFlow::Assertion | GrantFlow::Enterprise(_))
    }

    /// Where the metadata of the client is, which is then its id wherever an authorization server
    /// supports that. The document there must have this very URL as `client_id`, and among its
    /// `redirect_uris` the redirect URI. `secret`: what it says of how the client authenticates.
    ///
    /// # Errors
    ///
    /// The URL is none, is not `https`, or has no path; or there is a password, which every
    /// authorization server would get to know.
    // MCP 2026-07-28 basic/authorization/client-registration#client-id-metadata-documents [AUTHC-028]
    // MCP 2026-07-28 basic/authorization/client-registration#implementation-requirements [AUTHC-029] [AUTHC-030]
    pub fn metadata_document(
        mut self,
        url: &str,
        secret: ClientSecret,
    ) -> Result<Self, InvalidOption> {
        check_client_id(&Location::parse(url).map_err(InvalidOption::MetadataUrl)?)?;
        if matches!(secret, ClientSecret::Password(_)) {
            return Err(InvalidOption::SharedPassword);
        }
        self.metadata_document = Some((url.into(), secret));
        Ok(self)
    }

    /// What to say of the client where it has to register itself. Without this it never does.
    // MCP 2025-06-18 basic/authorization#dynamic-client-registration [AUTHC-009]
    // MCP 2025-11-25 basic/authorization#dynamic-client-registration [AUTHC-010]
    #[must_use]
    pub fn register_as(mut self, metadata: ClientMetadata) -> Self {
        self.registration = Some(metadata);
        self
    }

    /// The key to bind tokens to, at every authorization server that does so. Others give tokens
    /// that are not bound.
    ///
    /// # Errors
    ///
    /// The key is none, or has its private half in it.
    pub fn dpop(mut self, key: &DpopKey) -> Result<Self, InvalidOption> {
        self.dpop = Some(ProofKey::new(key)?);
        Ok(self)
    }

    /// Whether tokens must be bound to the key of [`dpop`](Self::dpop): an authorization server that
    /// answers with another one is refused, as is what was kept. Not by default: most bind none, and
    /// whoever could take the binding out of the answer has the token anyway (RFC 9449, section 5).
    /// Without a key this does nothing.
    #[must_use]
    pub const fn dpop_bound_access_tokens(mut self, only: bool) -> Self {
        self.bound_only = only;
        self
    }

    /// Whether a server in the open may name addresses of this machine and of private networks:
    /// for its metadata, its authorization servers, and the endpoints of these. Not by default, as
    /// it could have the client send requests where it cannot send any itself. A server that is at
    /// such an address itself may always do so.
    ///
    /// Only what is written as an address is looked at, and `localhost`. What a name stands for is
    /// seen by whoever resolves it.
    // MCP 2026-07-28 security-best-practices#server-side-request-forgery-ssrf [SEC-005] [SEC-006]
    #[must_use]
    pub const fn internal_addresses(mut self, allowed: bool) -> Self {
        self.internal_addresses = allowed;
        self
    }

    /// Scopes to ask for in any case, beside those that the server wants.
    ///
    /// # Errors
    ///
    /// One of them is none.
    pub fn scopes<S: Into<String>>(
        mut self,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Self, InvalidOption> {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        let allowed = |byte| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b'\\');
        match self.scopes.iter().find(|it| it.is_empty() || !it.bytes().all(allowed)) {
            Some(scope) => Err(InvalidOption::Scope(scope.clone())),
            None => Ok(self),
        }
    }

    /// Whether to ask for a refresh token that outlives the user's session, where the authorization
    /// server has such: the scope `offline_access`. Not by default.
    // MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-064]
    #[must_use]
    pub const fn offline_access(mut self, wanted: bool) -> Self {
        self.offline_access = wanted;
        self
    }

    /// The revision by whose rules metadata is looked for: the latest by default, which finds it in
    /// all places.
    #[must_use]
    pub const fn revision(mut self, revision: Revision) -> Self {
        self.revision = revision;
        self
    }

    /// The bounds on what servers can cost.
    #[must_use]
    pub const fn limits(mut self, limits: ClientLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How long things may take.
    #[must_use]
    pub const fn timeouts(mut self, timeouts: ClientTimeouts) -> Self {
        self.timeouts = timeouts;
        self
    }
}

/// The identity provider of an enterprise, and what it knows the client as.
#[derive(Clone, Debug)]
pub struct IdentityProvider {
    /// Its issuer identifier.
    pub issuer: String,
    /// Where tokens are exchanged (RFC 8693).
    pub token_endpoint: Location,
    /// What it knows the client as.
    pub client_id: String,
    /// How the client authenticates there.
    pub secret: ClientSecret,
}

/// A client that an authorization server knows already.
#[derive(Clone, Debug)]
pub struct RegisteredClient {
    /// The authorization server that knows it. A client with a credential must name it: see
    /// [`InvalidOption::NoIssuer`]. `None` for a public client: whichever the MCP server names first,
    /// and only that one from then on, as long as its tokens are kept.
    pub issuer: Option<String>,
    /// What it is known as.
    pub client_id: String,
    /// What it proves that with.
    pub secret: ClientSecret,
}

/// What a client authenticates with at a token endpoint.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientSecret {
    /// Nothing: a public client.
    None,
    /// A password, sent as the authorization server wants it.
    Password(String),
    /// A private key that the application signs with when asked
    /// ([`Action::Sign`](super::Action::Sign)).
    PrivateKey {
        /// The algorithm by its name of RFC 7518, such as `ES256`.
        algorithm: String,
        /// What the authorization server knows the key as.
        key_id: Option<String>,
    },
}

/// What a client says of itself when it registers (RFC 7591).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientMetadata {
    /// Its name, for the user.
    pub client_name: String,
    /// A page about it.
    pub client_uri: Option<String>,
    /// What kind of application it is.
    pub application_type: ApplicationType,
}

/// What kind of application a client is, which decides over the redirect URIs that it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationType {
    /// On the user's device: desktop, mobile, command line, or a web page on localhost.
    Native,
    /// In a browser, from a server elsewhere.
    Web,
}

/// The key that tokens are bound to (DPoP, RFC 9449). The application signs with its private half
/// when asked.
#[derive(Clone, PartialEq, Eq)]
pub struct DpopKey {
    /// The algorithm by its name of RFC 7518, such as `ES256`.
    pub algorithm: String,
    /// The public half as a JWK, in JSON.
    pub jwk: String,
}

impl ClientMetadata {
    /// A client with this name, and nothing else to say.
    #[must_use]
    pub fn new(client_name: impl Into<String>, application_type: ApplicationType) -> Self {
        Self { client_name: client_name.into(), client_uri: None, application_type }
    }
}

impl fmt::Debug for ClientSecret {
    /// Leaves the password out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Password(_) => "Password(..)",
            Self::PrivateKey { .. } => "PrivateKey(..)",
        })
    }
}

impl fmt::Debug for DpopKey {
    /// Leaves the JWK out: a private half may be in it by mistake.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}
