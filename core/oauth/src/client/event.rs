use alloc::string::String;

use mcp_sansio::http::ExchangeId;
use mcp_sansio_sync::Arc;

use super::AuthorizationFailure;

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
