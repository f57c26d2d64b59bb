use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use mcp_sansio::Instant;
use mcp_sansio_async::Timer;

use crate::Clock;

/// What comes of `future`; `None` if that takes longer than until `deadline`.
pub(crate) async fn before<F: Future>(deadline: Instant, future: F) -> Option<F::Output> {
    let (mut future, mut clock) = (pin!(future), Clock::new());
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => clock.poll_until(cx, deadline).map(|()| None),
    })
    .await
}
