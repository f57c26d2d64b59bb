//! Drives a connection and the work that uses it as one future.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Runs `work` to completion while driving `connection` in the same task, without help of a
/// runtime. Discards the output of `connection`; `work` notices the end of the connection through
/// its calls.
pub async fn together<C: Future, W: Future>(connection: C, work: W) -> W::Output {
    let (mut connection, mut work) = (pin!(connection), pin!(work));
    let mut connected = true;
    poll_fn(|cx| {
        // Calls made by the work wake the task, so that the connection is polled again and sends
        // them.
        if connected && connection.as_mut().poll(cx).is_ready() {
            connected = false;
        }
        work.as_mut().poll(cx)
    })
    .await
}

/// Returns the output of `work`, or `None` if `alarm` completes first.
pub async fn before<A: Future, W: Future>(alarm: A, work: W) -> Option<W::Output> {
    let (mut alarm, mut work) = (pin!(alarm), pin!(work));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => alarm.as_mut().poll(cx).map(|_| None),
    })
    .await
}
