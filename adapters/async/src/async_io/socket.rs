use std::io::{self, IoSlice};
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_io::Async;
use futures_io::{AsyncRead, AsyncWrite};

use crate::ByteStream;

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
