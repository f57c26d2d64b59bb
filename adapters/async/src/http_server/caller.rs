use std::pin::pin;

use mcp_sansio::Principal;
use mcp_sansio::http::{RequestHead, Response};
use mcp_sansio_handlers::TokenRequirement;
use mcp_sansio_oauth::Grant;

use super::shared_server::SharedServer;
use super::sleep::with_timeout;

/// Who sends a request.
#[derive(Debug)]
pub(super) enum Caller<'a> {
    /// Whoever the server says, by the token of the request.
    Granted(Grant),
    /// Whoever a layer before this one says, if it does.
    Named(Option<&'a Principal>),
}

impl<'a> Caller<'a> {
    /// Finds out who sends a request, or how it is refused. The lock is not held while a token is
    /// checked.
    pub(super) async fn identify(
        shared: &SharedServer,
        head: &RequestHead<'_>,
        named: Option<&'a Principal>,
    ) -> Result<Self, Response> {
        let authorization = shared.lock().server.authorize(head);
        let mut checking = match authorization {
            TokenRequirement::NotNeeded => return Ok(Self::Named(named)),
            TokenRequirement::Respond(response) => return Err(response),
            TokenRequirement::Check(checking) => checking,
        };
        let checked = with_timeout(checking.time(), &*shared.runtime, pin!(&mut checking)).await;
        match checked {
            Some(granted) => granted.map(Self::Granted),
            None => Err(checking.unchecked()),
        }
    }
}
