use std::io::{self, IoSlice};
use std::net::{Shutdown, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBufCursor, Write};
#[cfg(feature = "http-server")]
use mcp_sansio_async::HyperNetwork;
use mcp_sansio_async::{ByteStream, ListenerSocket, Network, PeerAddress};
use smol_hyper::rt::{FuturesIo, SmolTimer};

use crate::runtime::AsyncRuntime;

/// A listening socket. Create it with `from` from a listener of smol, or from an [`Async`] one.
#[derive(Debug)]
#[non_exhaustive]
pub enum Listener {
    /// On an address and port.
    Tcp(Arc<Async<TcpListener>>),
    /// On a path.
    #[cfg(unix)]
    Unix(Arc<Async<UnixListener>>),
}

impl<T: Into<Arc<Async<TcpListener>>>> From<T> for Listener {
    fn from(listener: T) -> Self {
        Self::Tcp(listener.into())
    }
}

impl Network for AsyncRuntime {
    type Listener = Listener;
    type Socket = AcceptedSocket;
    type Stream = Accepted;

    fn listener(listener: ListenerSocket) -> io::Result<Listener> {
        match listener {
            ListenerSocket::Tcp(listener) => Ok(Listener::Tcp(Arc::new(Async::new(listener)?))),
            #[cfg(unix)]
            ListenerSocket::Unix(listener) => Ok(Listener::Unix(Arc::new(Async::new(listener)?))),
        }
    }

    async fn accept(listener: &Listener) -> io::Result<(AcceptedSocket, PeerAddress)> {
        let (socket, peer) = match listener {
            Listener::Tcp(listener) => {
                let (socket, address) = listener.accept().await?;
                // Fails only on a broken socket, which the next read reports.
                let _ = socket.get_ref().set_nodelay(true);
                (Accepted::Tcp(socket), PeerAddress::Tcp(address))
            }
            #[cfg(unix)]
            Listener::Unix(listener) => {
                let (socket, _) = listener.accept().await?;
                let peer = PeerAddress::of_unix(socket.get_ref());
                (Accepted::Unix(socket), peer)
            }
        };
        Ok((AcceptedSocket(FuturesIo::new(socket)), peer))
    }

    fn stream(socket: AcceptedSocket) -> Accepted {
        socket.0.into_inner()
    }
}

/// An accepted connection, for hyper. Unlike [`FuturesIo`] it writes several parts at once, so that
/// hyper does not copy a response into a buffer, where its length would no longer be counted.
#[derive(Debug)]
pub struct AcceptedSocket(FuturesIo<Accepted>);

impl Read for AcceptedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, space)
    }
}

impl Write for AcceptedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.0.get_mut()).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(feature = "http-server")]
impl HyperNetwork for AsyncRuntime {
    const HTTP2: bool = false;

    fn hyper_timer() -> impl hyper::rt::Timer + Clone + Send + Sync + 'static {
        SmolTimer::new()
    }
}

/// A socket that shuts down its write side when it is closed. Those of `async-io` do so only when
/// they are dropped.
#[derive(Debug)]
#[non_exhaustive]
pub enum Accepted {
    /// From a TCP listener.
    Tcp(Async<TcpStream>),
    /// From a Unix-domain socket.
    #[cfg(unix)]
    Unix(Async<UnixStream>),
}

impl AsyncRead for Accepted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_read(cx, space),
            #[cfg(unix)]
            Self::Unix(socket) => Pin::new(socket).poll_read(cx, space),
        }
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write(cx, bytes),
            #[cfg(unix)]
            Self::Unix(socket) => Pin::new(socket).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
            #[cfg(unix)]
            Self::Unix(socket) => Pin::new(socket).poll_write_vectored(cx, slices),
        }
    }

    /// Nothing is buffered.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match self.get_mut() {
            Self::Tcp(socket) => socket.get_ref().shutdown(Shutdown::Write),
            #[cfg(unix)]
            Self::Unix(socket) => socket.get_ref().shutdown(Shutdown::Write),
        })
    }
}

impl ByteStream for Accepted {
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
