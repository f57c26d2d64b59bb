use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use mcp_sansio::http::Location;
use mcp_sansio::{InvalidValue, Revision};

use super::registration::check_client_id;
use crate::discovery::is_secure;
use crate::dpop::ProofKey;
use crate::{MetadataUrls, UrlFault, check_redirect_uri};

/// How a client gets tokens, and its identity.
///
/// ```
/// use mcp_sansio_oauth::client::{ApplicationType, AuthorizationOptions, ClientMetadata};
///
/// // The authorization server returns the user to this address.
/// let options = AuthorizationOptions::code("http://127.0.0.1:8080/callback")?
///     .register_as(ClientMetadata::new("Demo", ApplicationType::Native))
///     .scopes(["files:read"])?;
/// # let _ = options;
/// # Ok::<(), mcp_sansio_oauth::client::InvalidOption>(())
/// ```
#[derive(Clone, Debug)]
pub struct AuthorizationOptions {
    pub(super) grant: GrantFlow,
    pub(super) registered: Vec<RegisteredClient>,
    pub(super) metadata_document: Option<(String, ClientSecret)>,
    pub(super) registration: Option<ClientMetadata>,
    pub(super) dpop: Option<ProofKey>,
    pub(super) bound_only: bool,
    pub(super) internal_addresses: bool,
    pub(super) scopes: Vec<String>,
    pub(super) offline_access: bool,
    pub(super) revision: Option<Revision>,
    pub(super) limits: AuthorizationLimits,
    pub(super) timeouts: ClientTimeouts,
}

/// Why an option is invalid. The application's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOption {
    /// The redirect URI cannot be used.
    #[error("the redirect URI is not usable: {0}")]
    RedirectUri(UrlFault),
    /// The URL of the client's metadata is invalid: it is `https`, and has a path.
    #[error("the URL of the client's metadata is not usable: {0}")]
    MetadataUrl(UrlFault),
    /// A client that is identified by its metadata has a password: every authorization server that
    /// it uses would learn it.
    #[error("a client that is known by the URL of its metadata cannot have a password")]
    SharedPassword,
    /// The key to bind tokens to is invalid.
    #[error("{0}")]
    Dpop(InvalidValue),
    /// An issuer is invalid.
    #[error("the issuer is not usable: {0}")]
    Issuer(UrlFault),
    /// A registered client has a credential and no issuer: any authorization server that the MCP
    /// server names would get it. Name the issuer, or state with
    /// [`registered_trusting_first_issuer`](AuthorizationOptions::registered_trusting_first_issuer)
    /// that the MCP server is trusted to name it.
    #[error(
        "the client `{client_id}` has a credential but no issuer that it is for: name the issuer in \
         `RegisteredClient::issuer`, or let the MCP server choose it with \
         `AuthorizationOptions::registered_trusting_first_issuer`"
    )]
    NoIssuer {
        /// The client.
        client_id: String,
    },
    /// The token endpoint of the identity provider is neither `https` nor on this machine.
    #[error("the token endpoint of the identity provider is not usable: {0}")]
    TokenEndpoint(UrlFault),
    /// A scope is empty, or has a character that scopes cannot have.
    #[error("`{0}` is not a valid scope")]
    Scope(String),
}

/// The grant that a client requests tokens with.
#[derive(Clone, Debug)]
pub(super) enum GrantFlow {
    /// A user signs in with a browser and is redirected to this URI.
    AuthorizationCode {
        /// The redirect URI, to which the authorization server sends the user.
        redirect_uri: String,
        /// Another one for authorization servers that do not register the first.
        fallback: Option<String>,
    },
    /// The client acts on its own behalf.
    ClientCredentials,
    /// The client presents an assertion of a third party (RFC 7523), such as a workload identity.
    /// The application provides it on
    /// [`AuthorizationAction::Assert`](super::AuthorizationAction::Assert).
    Assertion,
    /// The client exchanges the user's ID token at the identity provider of the enterprise for a
    /// grant (ID-JAG) that the authorization server accepts as an assertion. The application
    /// provides the ID token on
    /// [`AuthorizationAction::Assert`](super::AuthorizationAction::Assert).
    Enterprise(IdentityProvider),
}

impl GrantFlow {
    /// Whether the grant requires an action of the user.
    pub(super) const fn needs_user(&self) -> bool {
        matches!(self, Self::AuthorizationCode { .. })
    }

    /// Returns the redirect URI, or the other one, if the grant has it.
    pub(super) fn redirect_uri(&self, fallback: bool) -> Option<&str> {
        match self {
            Self::AuthorizationCode { fallback: other, .. } if fallback => other.as_deref(),
            Self::AuthorizationCode { redirect_uri, .. } => Some(redirect_uri),
            _ => None,
        }
    }
}

impl AuthorizationOptions {
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
            revision: None,
            limits: AuthorizationLimits::DEFAULT,
            timeouts: ClientTimeouts::DEFAULT,
        }
    }

    /// Lets the user sign in with a browser and return to `redirect_uri`, which is sent unchanged.
    ///
    /// # Errors
    ///
    /// The redirect URI is invalid for any application: see [`UrlFault`].
    pub fn code(redirect_uri: impl Into<String>) -> Result<Self, InvalidOption> {
        let redirect_uri = redirect_uri.into();
        // Native applications may use every allowed redirect URI. The actual application type is
        // checked at its registration.
        check_redirect_uri(&redirect_uri, ApplicationType::Native)
            .map_err(InvalidOption::RedirectUri)?;
        Ok(Self::with_grant(GrantFlow::AuthorizationCode { redirect_uri, fallback: None }))
    }

    /// Sets another redirect URI, which the client registers if an authorization server does not
    /// accept the first: some accept loopback addresses by the name `localhost` only. The user
    /// returns to the URI in [`AuthorizationRequest`](super::AuthorizationRequest), so the
    /// application must listen on both. It has no effect without [`code`](Self::code) and
    /// [`register_as`](Self::register_as).
    ///
    /// # Errors
    ///
    /// The redirect URI is invalid for any application: see [`UrlFault`].
    // MCP 2026-07-28 basic/authorization/client-registration#application-type-and-redirect-uri-constraints [AUTHC-035]
    pub fn fallback_redirect_uri(mut self, uri: impl Into<String>) -> Result<Self, InvalidOption> {
        let uri = uri.into();
        check_redirect_uri(&uri, ApplicationType::Native).map_err(InvalidOption::RedirectUri)?;
        if let GrantFlow::AuthorizationCode { fallback, .. } = &mut self.grant {
            *fallback = Some(uri);
        }
        Ok(self)
    }

    /// Lets the client act on its own behalf.
    #[must_use]
    pub const fn client_credentials() -> Self {
        Self::with_grant(GrantFlow::ClientCredentials)
    }

    /// Lets the client present an assertion of a third party.
    #[must_use]
    pub const fn assertion() -> Self {
        Self::with_grant(GrantFlow::Assertion)
    }

    /// Lets the client present the ID token that the identity provider of an enterprise issued for
    /// its user.
    ///
    /// # Errors
    ///
    /// The token endpoint of the provider is neither `https` nor on this machine.
    pub fn enterprise(provider: IdentityProvider) -> Result<Self, InvalidOption> {
        // MCP 2026-07-28 auth:enterprise-managed-authorization#73-transport-security-and-endpoint-authentication [EMA-022] [EMA-023]
        if !is_secure(&provider.token_endpoint) {
            return Err(InvalidOption::TokenEndpoint(UrlFault::Insecure));
        }
        Ok(Self::with_grant(GrantFlow::Enterprise(provider)))
    }

    /// Adds a client that is registered at an authorization server. It is preferred to all other
    /// kinds of identity.
    ///
    /// # Errors
    ///
    /// [`InvalidOption::Issuer`]: its issuer is invalid. [`InvalidOption::NoIssuer`]: it has no
    /// issuer, but a password or a private key, or the grant presents an assertion for it.
    // MCP 2026-07-28 basic/authorization/client-registration#pre-registration [AUTHC-032]
    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding
    // [AUTHC-036] [AUTHC-037]: a credential without an issuer would be bound to the first issuer
    // that requests it.
    pub fn registered(self, client: RegisteredClient) -> Result<Self, InvalidOption> {
        if client.issuer.is_none() && self.shows_credential(&client) {
            return Err(InvalidOption::NoIssuer { client_id: client.client_id });
        }
        self.registered_trusting_first_issuer(client)
    }

    /// Adds a registered client with a credential whose issuer is not known in advance: the first
    /// authorization server that an MCP server names for it gets the credential.
    ///
    /// The risk: an MCP server that is malicious, or was compromised before its first use by this
    /// client, can name an authorization server of its own, which then receives the password or an
    /// assertion. Use this method only if you trust the URL of the MCP server with the credential,
    /// and [`registered`](Self::registered) with an issuer everywhere else.
    ///
    /// The choice is made once: it is saved under [`CredentialKey::Issuer`](super::CredentialKey)
    /// before the credential is sent. From then on no other authorization server gets the
    /// credential, no matter which MCP server names it. Use a store that outlives the process: in
    /// memory the choice lasts as long as the process. If the store fails to load it, the
    /// authorization fails.
    ///
    /// # Errors
    ///
    /// [`InvalidOption::Issuer`]: its issuer is invalid.
    pub fn registered_trusting_first_issuer(
        mut self,
        client: RegisteredClient,
    ) -> Result<Self, InvalidOption> {
        if let Some(issuer) = &client.issuer {
            MetadataUrls::for_issuer(Revision::LATEST, issuer).map_err(InvalidOption::Issuer)?;
        }
        self.registered.push(client);
        Ok(self)
    }

    /// Whether a token request as this client reveals a credential to the authorization server that
    /// could be used elsewhere.
    pub(super) fn shows_credential(&self, client: &RegisteredClient) -> bool {
        client.secret != ClientSecret::None
            || matches!(self.grant, GrantFlow::Assertion | GrantFlow::Enterprise(_))
    }

    /// Sets the URL of the client's metadata document, which is the client id at all authorization
    /// servers that support such documents. The document must contain this exact URL as
    /// `client_id`, and the redirect URI among its `redirect_uris`. `secret` is the authentication
    /// method that the document declares.
    ///
    /// # Errors
    ///
    /// The URL is invalid, is not `https`, or has no path; or there is a password, which every
    /// authorization server would learn.
    // MCP 2026-07-28 basic/authorization/client-registration#client-id-metadata-documents [AUTHC-028]
    // MCP 2026-07-28 basic/authorization/client-registration#implementation-requirements [AUTHC-029] [AUTHC-030]
    pub fn metadata_document(
        mut self,
        url: &str,
        secret: ClientSecret,
    ) -> Result<Self, InvalidOption> {
        let location = Location::parse(url).map_err(UrlFault::Url);
        location.and_then(|it| check_client_id(&it)).map_err(InvalidOption::MetadataUrl)?;
        if matches!(secret, ClientSecret::Password(_)) {
            return Err(InvalidOption::SharedPassword);
        }
        self.metadata_document = Some((url.into(), secret));
        Ok(self)
    }

    /// Sets the metadata for Dynamic Client Registration. Without it the client never registers.
    /// Has no effect without [`code`](Self::code): a client that acts without a user, or for an
    /// enterprise, proves an identity that was agreed on before.
    ///
    /// 2026-07-28 deprecates this kind of registration: it keeps working, and is used at
    /// authorization servers where the client has no other id. A new client should have a
    /// [metadata document](Self::metadata_document), or [be registered](Self::registered).
    // MCP 2025-06-18 basic/authorization#dynamic-client-registration [AUTHC-009]
    // MCP 2025-11-25 basic/authorization#dynamic-client-registration [AUTHC-010]
    // MCP 2026-07-28 auth:oauth-client-credentials#overview [OACC-005]
    #[must_use]
    pub fn register_as(mut self, metadata: ClientMetadata) -> Self {
        self.registration = self.grant.needs_user().then_some(metadata);
        self
    }

    /// Sets the key to bind tokens to, at authorization servers that support it. Others issue
    /// unbound tokens.
    ///
    /// # Errors
    ///
    /// The key is invalid, or contains its private half.
    pub fn dpop(mut self, key: &DpopKey) -> Result<Self, InvalidOption> {
        self.dpop = Some(ProofKey::new(key).map_err(InvalidOption::Dpop)?);
        Ok(self)
    }

    /// Sets whether tokens must be bound to the key of [`dpop`](Self::dpop): the client then
    /// refuses unbound tokens of an authorization server, and stored ones. Off by default: most
    /// servers do not bind tokens, and an attacker who can remove the binding from the response has
    /// the token anyway (RFC 9449, section 5). Has no effect without a key.
    #[must_use]
    pub const fn dpop_bound_access_tokens(mut self, only: bool) -> Self {
        self.bound_only = only;
        self
    }

    /// Sets whether a public server may name addresses on this machine and in private networks: for
    /// its metadata, its authorization servers, and their endpoints. Off by default, as it would
    /// let the server make the client send requests that the server cannot send. A server that has
    /// such an address may always name them.
    ///
    /// Checks only literal addresses, and `localhost`. The resolver of the application has to check
    /// the addresses of host names.
    // MCP 2026-07-28 security-best-practices#server-side-request-forgery-ssrf [SEC-005] [SEC-006]
    #[must_use]
    pub const fn internal_addresses(mut self, allowed: bool) -> Self {
        self.internal_addresses = allowed;
        self
    }

    /// Sets scopes to request in addition to those that the server requires.
    ///
    /// # Errors
    ///
    /// One of them is invalid.
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

    /// Sets whether to request a refresh token that outlives the user's session, with the scope
    /// `offline_access`, if the authorization server supports it. Off by default.
    // MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-064]
    #[must_use]
    pub const fn offline_access(mut self, wanted: bool) -> Self {
        self.offline_access = wanted;
        self
    }

    /// Sets the revision whose rules apply to metadata discovery. Without it the client tries all
    /// URLs, and last the endpoints that 2025-03-26 assumes of a server without metadata.
    #[must_use]
    pub const fn revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Returns the revision whose rules apply to discovery.
    pub(super) fn discovery(&self) -> Revision {
        self.revision.unwrap_or(Revision::LATEST)
    }

    /// Whether a server without metadata may have the endpoints of 2025-03-26.
    // MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-013]:
    // later revisions require metadata that declares PKCE.
    pub(super) fn implies_endpoints(&self) -> bool {
        self.revision.is_none_or(|it| it == Revision::V2025_03_26)
    }

    /// Sets the limits on servers.
    #[must_use]
    pub const fn limits(mut self, limits: AuthorizationLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the timeouts.
    #[must_use]
    pub const fn timeouts(mut self, timeouts: ClientTimeouts) -> Self {
        self.timeouts = timeouts;
        self
    }
}

/// The identity provider of an enterprise, with the client's identity there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IdentityProvider {
    /// The issuer identifier of the provider.
    pub issuer: String,
    /// The endpoint for token exchange (RFC 8693).
    pub token_endpoint: Location,
    /// The id of the client at the provider.
    pub client_id: String,
    /// How the client authenticates at the provider.
    pub secret: ClientSecret,
}

/// A client that is registered at an authorization server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RegisteredClient {
    /// The authorization server of the registration. A client with a credential must name it: see
    /// [`InvalidOption::NoIssuer`]. `None` for a public client: it is bound to the first issuer
    /// that the MCP server names, as long as its tokens are stored.
    pub issuer: Option<String>,
    /// The client id.
    pub client_id: String,
    /// The credential of the client.
    pub secret: ClientSecret,
}

impl IdentityProvider {
    /// Creates a provider from its issuer identifier, its endpoint for token exchange, and the
    /// client's identity there.
    #[must_use]
    pub fn new(
        issuer: impl Into<String>,
        token_endpoint: Location,
        client_id: impl Into<String>,
        secret: ClientSecret,
    ) -> Self {
        let (issuer, client_id) = (issuer.into(), client_id.into());
        Self { issuer, token_endpoint, client_id, secret }
    }
}

impl RegisteredClient {
    /// Creates a client without an issuer, which only a public client may lack.
    #[must_use]
    pub fn new(client_id: impl Into<String>, secret: ClientSecret) -> Self {
        Self { issuer: None, client_id: client_id.into(), secret }
    }

    /// Sets [`RegisteredClient::issuer`].
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }
}

/// The credential of a client at a token endpoint.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientSecret {
    /// No credential: a public client.
    None,
    /// A password, sent in the form that the authorization server requires.
    Password(String),
    /// A private key that the application signs with on
    /// [`AuthorizationAction::Sign`](super::AuthorizationAction::Sign).
    PrivateKey {
        /// The name of the algorithm in RFC 7518, such as `ES256`.
        algorithm: String,
        /// The id of the key at the authorization server.
        key_id: Option<String>,
    },
}

/// The metadata of a client for its registration (RFC 7591).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientMetadata {
    /// The name of the client, for the user.
    pub client_name: String,
    /// The URL of a page about the client.
    pub client_uri: Option<String>,
    /// The type of the application.
    pub application_type: ApplicationType,
}

/// The type of an application, which determines its allowed redirect URIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplicationType {
    /// Runs on the user's device: desktop, mobile, command line, or a web page on localhost.
    Native,
    /// Runs in a browser, served from elsewhere.
    Web,
}

/// The key that tokens are bound to (DPoP, RFC 9449). The application signs with its private half
/// on request.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DpopKey {
    /// The name of the algorithm in RFC 7518, such as `ES256`.
    pub algorithm: String,
    /// The public half as a JWK, in JSON.
    pub jwk: String,
}

impl DpopKey {
    /// Creates a key from the name of its algorithm and the JWK of its public half.
    #[must_use]
    pub fn new(algorithm: impl Into<String>, jwk: impl Into<String>) -> Self {
        Self { algorithm: algorithm.into(), jwk: jwk.into() }
    }

    /// Returns the thumbprint of the key (RFC 7638), by which tokens that are bound to it name it.
    ///
    /// # Errors
    ///
    /// The key cannot be used for DPoP: the caller's error.
    pub fn thumbprint(&self) -> Result<String, InvalidValue> {
        ProofKey::new(self).map(|key| key.thumbprint())
    }
}

impl ClientMetadata {
    /// Creates metadata with only a name and a type.
    #[must_use]
    pub fn new(client_name: impl Into<String>, application_type: ApplicationType) -> Self {
        Self { client_name: client_name.into(), client_uri: None, application_type }
    }
}

impl fmt::Debug for ClientSecret {
    /// Omits the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Password(_) => "Password(..)",
            Self::PrivateKey { .. } => "PrivateKey(..)",
        })
    }
}

mcp_sansio::partial_debug! {
    /// Omits the JWK, which may contain a private half by mistake.
    impl Debug for DpopKey { algorithm, .. }
}

// ------------------------------------------------------------------ limits

/// The limits on what servers can make an authorizing client store or do. Each default states its
/// reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthorizationLimits {
    /// The most requests that wait for a token at once. 128: more than an HTTP client sends
    /// concurrently by default. Further ones are refused.
    pub waiting_max: usize,
    /// The most bytes of an authorization server's document. 256 KiB: several times the largest
    /// known.
    pub document_bytes_max: usize,
    /// The most bytes that are read of a response that is not needed, before it is aborted. 64 KiB:
    /// aborting it costs a connection.
    pub refusal_bytes_max: usize,
    /// The most responses that are read although they are not needed. 16: the next one is aborted
    /// at once.
    pub refusals_max: usize,
    /// The most redirects followed for one metadata document, within its origin. 3.
    pub redirects_max: u32,
    /// The most authorization servers of one MCP server that are tried. 4.
    pub issuers_max: usize,
    /// The most authorizations for one operation because of insufficient scopes. 2: one, and
    /// another one in case the user did not grant everything.
    pub step_ups_max: u32,
    /// The most operations whose authorizations are counted. 64: the oldest are dropped first.
    pub operations_max: usize,
    /// The most scopes of one token request. 256. Further ones are not requested.
    pub scopes_max: usize,
    /// How often one request is repeated because the server requires a new nonce in its proof. 3: a
    /// nonce may expire while a request is in transit.
    pub nonces_max: u32,
}

impl AuthorizationLimits {
    /// The default limits.
    pub const DEFAULT: Self = Self {
        waiting_max: 128,
        document_bytes_max: 256 * 1024,
        refusal_bytes_max: 64 * 1024,
        refusals_max: 16,
        redirects_max: 3,
        issuers_max: 4,
        step_ups_max: 2,
        operations_max: 64,
        scopes_max: 256,
        nonces_max: 3,
    };
}

impl Default for AuthorizationLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The timeouts for the steps of an authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientTimeouts {
    /// The timeout for one exchange with a server. 30 s: far longer than a working server needs.
    pub exchange: Duration,
    /// The timeout for the user, from the action to the redirect. 15 min: an application that shows
    /// one page after the other, each for 5 min, has time for three.
    pub user: Duration,
    /// The timeout for any other action of the application. 60 s: a key store may ask its user.
    pub application: Duration,
    /// How long a response that is not needed is read. 2 s: refusals are short.
    pub refusal: Duration,
    /// How long before its expiry a token is renewed, or half of its lifetime if that is shorter.
    /// 30 s: longer than a request is in transit.
    pub renew_before: Duration,
    /// How long to wait after a failed early renewal before the next one. 10 s: meanwhile requests
    /// are sent with the current token.
    pub renewal_pause: Duration,
}

impl ClientTimeouts {
    /// The default timeouts.
    pub const DEFAULT: Self = Self {
        exchange: Duration::from_secs(30),
        user: Duration::from_secs(15 * 60),
        application: Duration::from_secs(60),
        refusal: Duration::from_secs(2),
        renew_before: Duration::from_secs(30),
        renewal_pause: Duration::from_secs(10),
    };
}

impl Default for ClientTimeouts {
    fn default() -> Self {
        Self::DEFAULT
    }
}
