use alloc::string::String;

use mcp_sansio::http::ExchangeId;
use mcp_sansio_sync::Arc;

use super::AuthorizationFailure;

/// What happened, in the order in which it did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A request waits for a token: its time stands still.
    Paused(ExchangeId),
    /// A request that waited goes on: its time, too.
    Resumed(ExchangeId),
    /// A request that waited, or was refused before it could, gets no token. It is over: tell the HTTP
    /// client so by [`http::Client::refuse`](mcp_sansio::http::Client::refuse). Nothing of it comes any
    /// more.
    Refused(ExchangeId, Arc<AuthorizationFailure>),
    /// There is a token, as was asked for.
    Authorized {
        /// Whose.
        issuer: String,
        /// What it is good for, where that is known: separated by spaces.
        scope: Option<String>,
    },
    /// There is none, although one was asked for. Nothing is tried again by itself.
    Failed(Arc<AuthorizationFailure>),
}
