use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use mcp_sansio::peer::CloseReason;
use mcp_sansio_handlers::Client;
use mcp_sansio_handlers::endpoint::Endpoint;

use crate::{ByteStream, Driver, Timer};

/// Progress of a connection to a child process.
#[derive(Debug)]
pub enum OpenOutcome {
    /// The connection is open. Keep polling the driver.
    Open,
    /// The child exited on the era probe, and the connection needs a new one: see
    /// [`Driver::wants_stream`].
    WantsStream,
    /// The connection closed before it was open.
    Closed(CloseReason),
}

/// Drives a connection until it is open, or can no longer be opened on this stream. Cancel-safe.
pub async fn open<E, S, T>(client: &Client, driver: &mut Driver<E, S, T>) -> OpenOutcome
where
    E: Endpoint,
    S: ByteStream,
    T: Timer,
{
    let mut opened = pin!(client.opened());
    let mut has_ended = false;
    poll_fn(|cx| {
        // Poll the driver first: its progress completes the other future.
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
