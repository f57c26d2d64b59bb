//! Sockets, timers, standard streams and child processes of `async-io`, which work on any executor.
//!
//! A runtime whose timers are [`AsyncTimer`]s implements [`AsyncIo`]; it is then a
//! `Network` as well, and dials servers over HTTP.

#[cfg(feature = "async-io-http-client")]
pub mod dial;
#[cfg(any(feature = "async-io-http-client", feature = "async-io-http-server"))]
pub mod network;
#[cfg(feature = "async-io-client")]
pub mod process;
mod standard_streams;

use std::future::Future as _;
use std::io::{self, IoSlice};
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_io::{Async, Timer};
use futures_io::{AsyncRead, AsyncWrite};
use mcp_sansio::Instant;

use crate::runtime::{Alarm, AlarmTimer};
use crate::{ByteStream, clock};

pub use standard_streams::StandardStreams;

/// A runtime whose timers, sockets and processes are those of `async-io`. It adds an executor.
pub trait AsyncIo: crate::Runtime<Timer = AsyncTimer> {}

// ------------------------------------------------------------------ timer

/// The clock [`now`](crate::clock::now) with one alarm of `async-io`, which works on any executor.
pub type AsyncTimer = AlarmTimer<Timer>;

impl Alarm for Timer {
    fn now() -> Instant {
        clock::now()
    }

    fn new(at: Instant) -> Self {
        Self::at(clock::to_std(at))
    }

    fn reset(&mut self, at: Instant) {
        self.set_at(clock::to_std(at));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(self).poll(cx).map(drop)
    }
}

// ------------------------------------------------------------------ socket

/// A connected socket that shuts down its write side when it is closed. Those of `async-io` do so
/// only when they are dropped.
#[derive(Debug)]
pub struct Socket<T>(Arc<Async<T>>);

impl Socket<TcpStream> {
    /// Creates a socket that sends small messages at once (`TCP_NODELAY`), since the output is
    /// already batched.
    #[must_use]
    pub fn tcp(socket: Arc<Async<TcpStream>>) -> Self {
        // Fails only on a broken socket, which the next read reports.
        let _ = socket.get_ref().set_nodelay(true);
        Self(socket)
    }
}

#[cfg(unix)]
impl Socket<UnixStream> {
    /// Creates a socket.
    #[must_use]
    pub const fn unix(socket: Arc<Async<UnixStream>>) -> Self {
        Self(socket)
    }
}

/// A socket of the standard library whose write side can be closed.
pub trait HalfClose {
    /// Shuts down the write side.
    ///
    /// # Errors
    ///
    /// The socket is broken.
    fn close_output(&self) -> io::Result<()>;
}

impl HalfClose for TcpStream {
    fn close_output(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

#[cfg(unix)]
impl HalfClose for UnixStream {
    fn close_output(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl<T> AsyncRead for Socket<T>
where
    for<'a> &'a T: io::Read,
{
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.0).poll_read(cx, buffer)
    }
}

impl<T: HalfClose> AsyncWrite for Socket<T>
where
    for<'a> &'a T: io::Write,
{
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.0).poll_write_vectored(cx, slices)
    }

    /// Nothing is buffered.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.get_ref().close_output())
    }
}

impl<T: HalfClose> ByteStream for Socket<T>
where
    for<'a> &'a T: io::Read + io::Write,
{
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        AsyncRead::poll_read(Pin::new(self), cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(self), cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(self), cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_close(Pin::new(self), cx)
    }
}

#[cfg(test)]
mod timer_tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;
    use crate::Timer as _;

    /// Returns the milliseconds until a deadline of `millis` from now passes, after polling once
    /// for each deadline in `before`.
    fn wait(timer: &mut AsyncTimer, before: &[u64], millis: u64) -> u128 {
        let start = timer.now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut before = before.iter();
        async_io::block_on(poll_fn(|cx| {
            for &millis in before.by_ref() {
                assert!(timer.poll_until(cx, at(millis)).is_pending());
            }
            timer.poll_until(cx, at(millis))
        }));
        timer.now().saturating_since(start).as_millis()
    }

    #[test]
    fn the_last_deadline_counts_wherever_it_moved() {
        let mut timer = AsyncTimer::new();
        for before in [&[][..], &[50], &[5000], &[50, 5000, 70]] {
            let waited = wait(&mut timer, before, 100);
            assert!((100..4000).contains(&waited), "{waited} ms after {before:?}");
        }
    }
}
