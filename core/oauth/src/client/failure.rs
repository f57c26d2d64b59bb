use alloc::string::String;

use mcp_sansio::http::ExchangeFailure;

use crate::{
    DuplicateParameter, InvalidIssuer, InvalidRedirectUri, MetadataFault, NoAuthenticationMethod,
    RegistrationFault, ResponseFault, TokenFault, TooManyScopes,
};

use super::ActionFailure;

/// Why a client gets no token. URLs are told without their queries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizationFailure {
    /// The MCP server is neither `https` nor on this machine: a token that is sent there can be read
    /// on the way.
    #[error("the server is neither `https` nor on a loopback address, so it gets no token")]
    Insecure,
    /// A document must not be used. Its author's fault.
    #[error("{url}: {fault}")]
    Metadata {
        /// Where it is.
        url: String,
        /// What is wrong with it.
        fault: MetadataFault,
    },
    /// The MCP server, or its authorization server, names an address of this machine or of a private
    /// network, and is not at one itself: see
    /// [`ClientOptions::internal_addresses`](super::ClientOptions::internal_addresses).
    #[error(
        "a server in the open sends the client to {url}, which is on this machine or in a private network"
    )]
    Internal {
        /// What is named.
        url: String,
    },
    /// The MCP server names an issuer that cannot be one.
    #[error("{0}")]
    Issuer(#[from] InvalidIssuer),
    /// The issuer has no metadata at any place where it should.
    #[error("no metadata of the authorization server {issuer} is found")]
    NoMetadata {
        /// Whose metadata was looked for.
        issuer: String,
    },
    /// A server is not reached.
    #[error("{url} is not reached")]
    Unreachable {
        /// Which.
        url: String,
        /// What came of the attempt.
        failure: ExchangeFailure,
    },
    /// A server answers something that is of no use, such as an error of its own or a redirect to
    /// another server.
    #[error("{url} answers with status {status}")]
    Status {
        /// Which.
        url: String,
        /// The status code.
        status: u16,
    },
    /// A response is longer than
    /// [`ClientLimits::document_bytes_max`](super::ClientLimits::document_bytes_max). The fault of
    /// whoever sent it.
    #[error("the response from {url} is too long")]
    TooLong {
        /// Where it comes from.
        url: String,
    },
    /// The token endpoint gives no token.
    #[error("{url}: {fault}")]
    Token {
        /// The token endpoint.
        url: String,
        /// What it answers.
        fault: TokenFault,
    },
    /// The authorization server does not register the client. Where it dislikes the redirect URI,
    /// see to [`ApplicationType`](super::ApplicationType), or have the client registered by hand.
    #[error("{url}: {fault}")]
    Registration {
        /// The registration endpoint.
        url: String,
        /// What it answers.
        fault: RegistrationFault,
    },
    /// The client must not register with its redirect URI.
    #[error("{0}")]
    RedirectUri(#[from] InvalidRedirectUri),
    /// The authorization endpoint has a parameter of the client's in its URL. The authorization
    /// server's fault.
    #[error("{url}: {fault}")]
    Endpoint {
        /// The authorization endpoint.
        url: String,
        /// The parameter.
        fault: DuplicateParameter,
    },
    /// The server wants more scopes than
    /// [`ClientLimits::scopes_max`](super::ClientLimits::scopes_max).
    #[error("{0}")]
    Scopes(#[from] TooManyScopes),
    /// The client has no way to be known to the authorization server: configure a registered client
    /// for this issuer, the metadata document of the client, or what to register as.
    #[error(
        "the authorization server {issuer} does not know this client: configure a client id for it"
    )]
    NoIdentity {
        /// The authorization server.
        issuer: String,
    },
    /// The registered client is that of another authorization server than the MCP server names now.
    /// Either the MCP server has moved to another one, or it is an attack.
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
        reason: NoAuthenticationMethod,
    },
    /// The response that came with the user is not followed.
    #[error("{0}")]
    Response(#[from] ResponseFault),
    /// The application does not do what it was asked to.
    #[error("{0}")]
    Application(#[from] ActionFailure),
    /// The server does not take the token that it was just given.
    #[error("the server does not take the new token")]
    NotAccepted,
    /// The server wants more scopes for a request than a new token has, after all attempts.
    #[error("the scopes of the token do not suffice{}", OptionalDetail(.scope.as_deref()))]
    InsufficientScope {
        /// The scopes that it wants, separated by spaces, if it says so.
        scope: Option<String>,
    },
    /// Something took too long: see [`ClientTimeouts`](super::ClientTimeouts).
    #[error("timed out waiting for {0}")]
    TimedOut(WaitingFor),
    /// More requests wait for a token than
    /// [`ClientLimits::waiting_max`](super::ClientLimits::waiting_max).
    #[error("too many requests wait for a token")]
    TooManyWaiting,
    /// The client was closed, or the user signed out.
    #[error("the authorization was given up")]
    Closed,
}

/// What an authorization waits for.
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

impl core::fmt::Display for WaitingFor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Response(url) => f.write_str(url),
            Self::User => f.write_str("the user"),
            Self::Application => f.write_str("the application"),
        }
    }
}

/// Words that may be missing, after a colon.
struct OptionalDetail<'a>(Option<&'a str>);

impl core::fmt::Display for OptionalDetail<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.map_or(Ok(()), |words| write!(f, ": {words}"))
    }
}
