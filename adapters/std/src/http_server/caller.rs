use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use mcp_sansio::auth::Grant;
use mcp_sansio::http::{RequestHead, Response};
use mcp_sansio_async::Timer;
use mcp_sansio_handlers::TokenDemand;

use super::site::Site;
use crate::{Clock, now};

/// Finds out who sends a request by its token, on a server that wants one, or how the request is
/// refused. The lock is not held while a token is checked.
pub(super) async fn grant_of(
    site: &Arc<Site>,
    head: &RequestHead<'_>,
) -> Result<Option<Grant>, Response> {
    let authorization = site.lock().server.authorize(head);
    let mut checking = match authorization {
        TokenDemand::NotNeeded => return Ok(None),
        TokenDemand::Respond(response) => return Err(response),
        TokenDemand::Check(checking) => checking,
    };
    let (deadline, mut clock) = (now() + checking.time(), Clock::new());
    let checked = poll_fn(|cx| match Pin::new(&mut checking).poll(cx) {
        Poll::Ready(checked) => Poll::Ready(Some(checked)),
        Poll::Pending => clock.poll_until(cx, deadline).map(|()| None),
    });
    match checked.await {
        Some(granted) => granted.map(Some),
        None => Err(checking.unchecked()),
    }
}
