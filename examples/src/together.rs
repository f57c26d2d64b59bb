//! A connection and what is done with it, as one future.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Runs `work` to its end while `connection` is driven beside it, on one task and without any
/// runtime's help. What becomes of the connection is for `work` to notice.
pub async fn together<C: Future, W: Future>(connection: C, work: W) -> W::Output {
    let (mut connection, mut work) = (pin!(connection), pin!(work));
    let mut connected = true;
    poll_fn(|cx| {
        // Calls made by the work wake the task, so that the connection takes them next time.
        if connected && connection.as_mut().poll(cx).is_ready() {
            connected = false;
        }
        work.as_mut().poll(cx)
    })
    .await
}

/// The output of `work`, or nothing if `alarm` goes off first.
pub async fn before<A: Future, W: Future>(alarm: A, work: W) -> Option<W::Output> {
    let (mut alarm, mut work) = (pin!(alarm), pin!(work));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => alarm.as_mut().poll(cx).map(|_| None),
    })
    .await
}
