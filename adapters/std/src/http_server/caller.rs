use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_sansio::auth::Grant;
use mcp_sansio::handler::{Checking, TokenDemand};
use mcp_sansio::http::{RequestHead, Response};
use mcp_sansio_async::Timer;

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
    let checked = poll_fn(|cx| match poll(&mut checking, cx) {
        Poll::Ready(checked) => Poll::Ready(checked),
        Poll::Pending => clock.poll_until(cx, deadline).map(|()| None),
    });
    match checked.await {
        Some(granted) => granted.map(Some),
        None => Err(checking.unchecked()),
    }
}

/// A check that panics is done with `None`. The panic hook has reported it.
fn poll(checking: &mut Checking, cx: &mut Context<'_>) -> Poll<Option<Result<Grant, Response>>> {
    match catch_unwind(AssertUnwindSafe(|| Pin::new(checking).poll(cx))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    }
}
