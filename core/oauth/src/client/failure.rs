use alloc::string::String;

use mcp_sansio::http::ExchangeFailure;

use crate::{
    DuplicateParameter, InvalidIssuer, InvalidRedirectUri, MetadataFault, NoAuthenticationMethod,
    RegistrationFault, ResponseFault, TokenFault, TooManyScopes,
};

use super::ActionFailure;

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
    /// The MCP server names an invalid issuer.
    #[error("{0}")]
    Issuer(#[from] InvalidIssuer),
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
    /// A server answers with an unusable response, such as an error status or a redirect to another
    /// server.
    #[error("{url} answers with status {status}")]
    Status {
        /// The URL.
        url: String,
        /// The status code.
        status: u16,
    },
    /// A response is longer than
    /// [`AuthorizationLimits::document_bytes_max`](super::AuthorizationLimits::document_bytes_max). The error of
    /// its sender.
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
        fault: TokenFault,
    },
    /// The authorization server does not register the client. If it refuses the redirect URI, check
    /// the [`ApplicationType`](super::ApplicationType), or register the client manually.
    #[error("{url}: {fault}")]
    Registration {
        /// The registration endpoint.
        url: String,
        /// The fault of its answer.
        fault: RegistrationFault,
    },
    /// The client must not register with its redirect URI.
    #[error("{0}")]
    RedirectUri(#[from] InvalidRedirectUri),
    /// The URL of the authorization endpoint contains a parameter of the client. The authorization
    /// server's error.
    #[error("{url}: {fault}")]
    Endpoint {
        /// The authorization endpoint.
        url: String,
        /// The parameter.
        fault: DuplicateParameter,
    },
    /// The server requires more scopes than
    /// [`AuthorizationLimits::scopes_max`](super::AuthorizationLimits::scopes_max).
    #[error("{0}")]
    Scopes(#[from] TooManyScopes),
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
        reason: NoAuthenticationMethod,
    },
    /// The authorization response is invalid or refuses the request.
    #[error("{0}")]
    Response(#[from] ResponseFault),
    /// The application did not perform an action.
    #[error("{0}")]
    Application(#[from] ActionFailure),
    /// The server does not accept the token that was just issued.
    #[error("the server does not accept the new token")]
    NotAccepted,
    /// The server requires more scopes for a request than a new token has, after all attempts.
    #[error("the scopes of the token do not suffice{}", OptionalDetail(.scope.as_deref()))]
    InsufficientScope {
        /// The required scopes, separated by spaces, if the server names them.
        scope: Option<String>,
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

impl core::fmt::Display for WaitingFor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Response(url) => f.write_str(url),
            Self::User => f.write_str("the user"),
            Self::Application => f.write_str("the application"),
        }
    }
}

/// An optional text, shown after a colon.
struct OptionalDetail<'a>(Option<&'a str>);

impl core::fmt::Display for OptionalDetail<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.map_or(Ok(()), |words| write!(f, ": {words}"))
    }
}
