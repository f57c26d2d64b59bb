use std::pin::pin;

use mcp_sansio::Principal;
use mcp_sansio::http::{RequestHead, Response};
use mcp_sansio_handlers::TokenRequirement;
use mcp_sansio_oauth::Grant;

use super::shared_server::SharedServer;
use super::sleep::with_timeout;

/// The sender of a request.
#[derive(Debug)]
pub(super) enum Caller<'a> {
    /// Identified by the server from the token of the request.
    Granted(Grant),
    /// Identified by an earlier layer, if at all.
    Named(Option<&'a Principal>),
}

impl<'a> Caller<'a> {
    /// Identifies the sender of a request, or returns the response that refuses it. The lock is not
    /// held while a token is checked.
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
