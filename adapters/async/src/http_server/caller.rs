use std::pin::pin;
use std::sync::Arc;

use mcp_sansio::http::{RequestHead, Response};
use mcp_sansio::{Caller, Principal};
use mcp_sansio_handlers::TokenRequirement;

use super::runtime::with_timeout;
use super::shared_server::SharedServer;

/// Identifies the sender of a request: by its token, as an earlier layer did in the request's
/// `extensions`, or as the `principal` of its connection. Otherwise returns the response that refuses the request. The lock is not held while
/// a token is checked.
pub(super) async fn identify(
    shared: &Arc<SharedServer>,
    head: &RequestHead<'_>,
    extensions: &http::Extensions,
    principal: Option<Principal>,
) -> Result<Caller, Response> {
    let authorization = shared.lock().server.authorize(head);
    let mut checking = match authorization {
        TokenRequirement::NotNeeded => return Ok(identified(extensions, principal)),
        TokenRequirement::Respond(response) => return Err(response),
        TokenRequirement::Check(checking) => checking,
    };
    let checked = with_timeout(checking.time(), &*shared.runtime, pin!(&mut checking)).await;
    let Some(granted) = checked else { return Err(checking.unchecked()) };
    let grant = granted?;
    // Other nodes must not accept the same proof.
    let recording = shared.change(|state| state.server.record_proof(&grant, shared.now()));
    if let Some(recording) = recording {
        recording.await?;
    }
    Ok(Caller::from(grant))
}

/// Returns the sender according to an earlier layer, or else to the connection.
fn identified(extensions: &http::Extensions, principal: Option<Principal>) -> Caller {
    let principal = || extensions.get().cloned().or(principal).into();
    extensions.get().cloned().unwrap_or_else(principal)
}
