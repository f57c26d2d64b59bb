use alloc::string::String;

use crate::auth::{InvalidIssuer, MetadataFault, ResponseFault};

use super::ActionFailure;

/// Why a client gets no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizationFailure {
    /// A document must not be used. Its author's fault.
    #[error("{url}: {fault}")]
    Metadata {
        /// Where it is.
        url: String,
        /// What is wrong with it.
        fault: MetadataFault,
    },
    /// The MCP server names an issuer that cannot be one.
    #[error("{0}")]
    Issuer(#[from] InvalidIssuer),
    /// The response that came with the user is not followed.
    #[error("{0}")]
    Response(#[from] ResponseFault),
    /// The application does not do what it was asked to.
    #[error("{0}")]
    Application(#[from] ActionFailure),
    // The rest is to be filled in: no metadata, unreachable, refused by the token endpoint
    // (with `error` and `error_description`), registration refused, no identity, client of another
    // issuer, too many step-ups, timed out (which step), too many waiting, redirected, closed.
}
