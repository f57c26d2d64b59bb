use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::http::Location;

/// How a client gets tokens, and as whom.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    pub(super) grant: Grant,
    pub(super) registered: Vec<RegisteredClient>,
    pub(super) metadata_document: Option<Location>,
    pub(super) registration: Option<ClientMetadata>,
    pub(super) dpop: Option<DpopKey>,
    pub(super) scopes: Vec<String>,
    pub(super) offline_access: bool,
    pub(super) limits: ClientLimits,
    pub(super) timeouts: ClientTimeouts,
}

/// What a token is asked for with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Grant {
    /// A user signs in with a browser and comes back to this redirect URI, which is `https`, of the
    /// loopback interface, or of a scheme that is the application's own.
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
    /// The authorization server that knows it. `None`: whichever the MCP server names first, and
    /// only that one from then on.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DpopKey {
    /// The algorithm by its name of RFC 7518, such as `ES256`.
    pub algorithm: String,
    /// The public half as a JWK, in JSON.
    pub jwk: String,
}

/// Every bound on what servers can make an authorizing client hold or do. Each default has its
/// reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Requests that wait for a token at once. 64: as many as an HTTP client has under way.
    pub waiting_max: usize,
    /// The length of a document of an authorization server, in bytes. 256 KiB.
    pub document_bytes_max: usize,
    /// Redirects followed for one metadata document, within its origin. 3.
    pub redirects_max: u32,
    /// Authorizations for one operation because its scopes do not suffice. 2: one, and one more in
    /// case that the user left something out.
    pub step_ups_max: u32,
    /// Operations whose step-ups are remembered. 64.
    pub operations_max: usize,
    /// Scopes of one request for a token. 256.
    pub scopes_max: usize,
}

/// How long the steps of an authorization may take.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientTimeouts {
    /// One exchange with a server. 30 s.
    pub exchange: Duration,
    /// The user, from the opening of the browser to the redirect. 5 min.
    pub user: Duration,
    /// Anything else that is asked of the application. 60 s.
    pub application: Duration,
    /// How long before its end a token is renewed. 30 s: longer than a request is on its way.
    pub renew_before: Duration,
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
