use std::io;
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_io::Async;
use mcp_sansio_async::ByteStream;
use mcp_sansio_async::async_io::{HalfClose, Socket};

/// A [`ByteStream`] over a socket. Create it with `from` from a socket of smol or of async-std (if
/// that feature is enabled), or from an [`Async`] socket.
///
/// Anything else that implements the traits of `futures-io`, such as a TLS stream, goes through
/// [`FuturesStream`](crate::runtime::FuturesStream). Sockets should not: closing a socket of async-std has
/// no effect.
///
/// ```no_run
/// use mcp_sansio_async_std::{self as mcp, Server, SocketStream};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let socket = smol::net::TcpStream::connect("127.0.0.1:8000").await?;
/// let server = Server::new("clock", "1.0.0").endpoint(mcp::seed())?;
/// mcp::drive(server, SocketStream::from(socket)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SocketStream<T>(Socket<T>);

// MCP 2026-07-28 basic/transports/index#custom-transports [STDIO-021]: sockets carry the framing of
// standard streams.
impl From<Arc<Async<TcpStream>>> for SocketStream<TcpStream> {
    /// Sends small messages at once (`TCP_NODELAY`), since the driver already batches its output.
    fn from(socket: Arc<Async<TcpStream>>) -> Self {
        Self(Socket::tcp(socket))
    }
}

impl From<Async<TcpStream>> for SocketStream<TcpStream> {
    /// Like the conversion of a shared socket.
    fn from(socket: Async<TcpStream>) -> Self {
        Arc::new(socket).into()
    }
}

#[cfg(unix)]
impl From<Arc<Async<UnixStream>>> for SocketStream<UnixStream> {
    fn from(socket: Arc<Async<UnixStream>>) -> Self {
        Self(Socket::unix(socket))
    }
}

#[cfg(unix)]
impl From<Async<UnixStream>> for SocketStream<UnixStream> {
    fn from(socket: Async<UnixStream>) -> Self {
        Arc::new(socket).into()
    }
}

impl<T: HalfClose> ByteStream for SocketStream<T>
where
    for<'a> &'a T: io::Read + io::Write,
{
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_close(cx)
    }
}
