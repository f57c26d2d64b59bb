use std::io;
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio_async::ByteStream;

/// A [`ByteStream`] from a socket, which is made into one with `from`: a socket of smol or of
/// async-std, where that feature is on, or an [`Async`] one.
///
/// Anything else that implements the traits of `futures-io`, such as a TLS stream, goes through
/// [`FuturesStream`](crate::FuturesStream). Sockets should not: those of async-std close nothing
/// when they are told to close.
#[derive(Debug)]
pub struct SocketStream<T>(Arc<Async<T>>);

// MCP 2026-07-28 basic/transports/index#custom-transports [STDIO-021]: sockets carry the framing of
// standard streams.
impl From<Arc<Async<TcpStream>>> for SocketStream<TcpStream> {
    /// Small messages are sent at once (`TCP_NODELAY`): the driver gathers what can be gathered.
    fn from(socket: Arc<Async<TcpStream>>) -> Self {
        // It would fail on a socket that is broken already, and then reading says so.
        let _ = socket.get_ref().set_nodelay(true);
        Self(socket)
    }
}

impl From<Async<TcpStream>> for SocketStream<TcpStream> {
    /// As from a shared one.
    fn from(socket: Async<TcpStream>) -> Self {
        Arc::new(socket).into()
    }
}

#[cfg(feature = "smol")]
impl From<smol::net::TcpStream> for SocketStream<TcpStream> {
    /// As from a shared one.
    fn from(socket: smol::net::TcpStream) -> Self {
        Arc::<Async<TcpStream>>::from(socket).into()
    }
}

#[cfg(unix)]
impl From<Arc<Async<UnixStream>>> for SocketStream<UnixStream> {
    fn from(socket: Arc<Async<UnixStream>>) -> Self {
        Self(socket)
    }
}

#[cfg(unix)]
impl From<Async<UnixStream>> for SocketStream<UnixStream> {
    fn from(socket: Async<UnixStream>) -> Self {
        Self(Arc::new(socket))
    }
}

#[cfg(all(unix, feature = "smol"))]
impl From<smol::net::unix::UnixStream> for SocketStream<UnixStream> {
    fn from(socket: smol::net::unix::UnixStream) -> Self {
        Self(socket.into())
    }
}

#[cfg(feature = "async-std")]
impl TryFrom<async_std::net::TcpStream> for SocketStream<TcpStream> {
    type Error = io::Error;

    /// Fails while there are clones of the socket, and where the system is out of something.
    fn try_from(socket: async_std::net::TcpStream) -> io::Result<Self> {
        Ok(Async::new(TcpStream::try_from(socket)?)?.into())
    }
}

#[cfg(all(unix, feature = "async-std"))]
impl TryFrom<async_std::os::unix::net::UnixStream> for SocketStream<UnixStream> {
    type Error = io::Error;

    /// Fails while there are clones of the socket, and where the system is out of something.
    fn try_from(socket: async_std::os::unix::net::UnixStream) -> io::Result<Self> {
        Ok(Async::new(UnixStream::try_from(socket)?)?.into())
    }
}

/// A socket that can be closed for one direction.
trait HalfClose {
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

#[allow(private_bounds, reason = "which sockets there are is settled")]
impl<T: HalfClose> ByteStream for SocketStream<T>
where
    for<'a> &'a T: io::Read + io::Write,
{
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.0).poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.0).poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.get_ref().close_output())
    }
}
