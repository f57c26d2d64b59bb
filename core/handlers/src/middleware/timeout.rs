use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::Poll;
use core::time::Duration;

use crate::threading::Threading;

use super::layers::layer;
use super::limit_error::LimitError;
use super::next::{MiddlewareResult, Next};
use super::server_request::ServerRequest;

/// Middleware that ends requests after a time, with [`LimitError::TimedOut`].
///
/// The handler is cancelled, as if its client had cancelled the request. Inner middleware sees the
/// [deadline](ServerRequest::deadline). Tasks are limited as well; exclude long tools with
/// [`when`](super::when()). Time that a plain function computes cannot be limited.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    after: Duration,
}

impl Timeout {
    /// Creates a timeout. It starts when the request reaches it: a wait for an outer
    /// [`ConcurrencyLimit`](super::ConcurrencyLimit) does not count, for an inner one it does.
    #[must_use]
    pub const fn new(after: Duration) -> Self {
        Self { after }
    }

    async fn around<K: Threading>(
        &self,
        request: &ServerRequest,
        next: Next<K>,
    ) -> MiddlewareResult {
        let deadline = request.now() + self.after;
        let next = next.deadline(deadline);
        let (mut run, mut sleep) = (pin!(next.run()), request.sleep_until(deadline));
        poll_fn(|cx| match run.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => {
                let timed_out = || Err(LimitError::TimedOut(self.after).into());
                Pin::new(&mut sleep).poll(cx).map(|()| timed_out())
            }
        })
        .await
    }
}

layer!(Timeout);
