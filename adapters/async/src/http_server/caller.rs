use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use mcp_sansio::Principal;
use mcp_sansio::auth::Grant;
use mcp_sansio::handler::{Checking, TokenDemand};
use mcp_sansio::http::{RequestHead, Response};

use super::alarm::within;
use super::site::Site;

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
    pub(super) async fn of(
        site: &Site,
        head: &RequestHead<'_>,
        named: Option<&'a Principal>,
    ) -> Result<Self, Response> {
        let authorization = site.lock().server.authorize(head);
        let mut checking = match authorization {
            TokenDemand::NotNeeded => return Ok(Self::Named(named)),
            TokenDemand::Respond(response) => return Err(response),
            TokenDemand::Check(checking) => checking,
        };
        let checked = within(checking.time(), &*site.runtime, pin!(Guarded(&mut checking))).await;
        match checked.flatten() {
            Some(granted) => granted.map(Self::Granted),
            None => Err(checking.unchecked()),
        }
    }
}

/// A check whose panics end nothing but itself: it is done with `None`. The panic hook has reported
/// it.
struct Guarded<'c>(&'c mut Checking);

impl Future for Guarded<'_> {
    type Output = Option<Result<Grant, Response>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let checking = &mut *self.0;
        match catch_unwind(AssertUnwindSafe(|| Pin::new(checking).poll(cx))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    }
}
