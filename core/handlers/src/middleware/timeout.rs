use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

#[cfg(feature = "client")]
use crate::client::ClientError;
#[cfg(feature = "client")]
use crate::client_middleware::{CallResult, ClientRequest, NextCall};
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
///
/// Around the calls of a client, it bounds the total time of a call, with its input rounds, inner
/// middleware and the task that it may become. The call is cancelled at the server, and fails with
/// [`ClientError::Limited`].
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
        let timed_out = || Err(LimitError::TimedOut(self.after).into());
        first_of(next.run(), request.sleep_until(deadline), timed_out).await
    }

    #[cfg(feature = "client")]
    pub(crate) async fn around_call(&self, request: ClientRequest, next: NextCall) -> CallResult {
        let waiting = request.clone();
        let timed_out = || Err(ClientError::Limited(LimitError::TimedOut(self.after)));
        first_of(next.run(request), waiting.sleep(self.after), timed_out).await
    }
}

/// Returns the output of `run`, or of `otherwise` if `sleep` ends first; then `run` is dropped.
async fn first_of<T>(
    run: impl Future<Output = T>,
    sleep: impl Future<Output = ()>,
    otherwise: impl Fn() -> T,
) -> T {
    let (mut run, mut sleep) = (pin!(run), pin!(sleep));
    poll_fn(|cx| match run.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(result),
        Poll::Pending => sleep.as_mut().poll(cx).map(|()| otherwise()),
    })
    .await
}

layer!(Timeout);
