use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use mcp_sansio::peer::CloseReason;
use mcp_sansio_handlers::{Client, Endpoint};

use crate::{ByteStream, Driver, Timer};

/// How far a connection to a child process is.
#[derive(Debug)]
pub enum OpenOutcome {
    /// It is open. The driver goes on.
    Open,
    /// The child ended on the probe for its era, and the connection wants another one: see
    /// [`Driver::wants_stream`].
    WantsStream,
    /// It is over before it was open.
    Closed(CloseReason),
}

/// Drives a connection until it is open or cannot be, at least not with this stream. May be dropped
/// and called again.
pub async fn open<E, S, T>(client: &Client, driver: &mut Driver<E, S, T>) -> OpenOutcome
where
    E: Endpoint,
    S: ByteStream,
    T: Timer,
{
    let mut opened = pin!(client.opened());
    let mut has_ended = false;
    poll_fn(|cx| {
        // The driver first: what it does is what the other waits for.
        if !has_ended && Pin::new(&mut *driver).poll(cx).is_ready() {
            if driver.wants_stream() {
                return Poll::Ready(OpenOutcome::WantsStream);
            }
            has_ended = true;
        }
        opened.as_mut().poll(cx).map(|opened| match opened {
            Ok(_) => OpenOutcome::Open,
            Err(reason) => OpenOutcome::Closed(reason),
        })
    })
    .await
}
