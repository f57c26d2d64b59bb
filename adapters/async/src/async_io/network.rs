//! Sockets for HTTP.

use std::io::{self, IoSlice};
use std::net::TcpListener;
#[cfg(unix)]
use std::os::unix::net::UnixListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_io::Async;
use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBufCursor, Timer, Write};
use smol_hyper::rt::{FuturesIo, SmolTimer};

use super::{AsyncIo, Socket};
use crate::network::{HyperRuntime, HyperSocket, ListenerSocket, Network, PeerAddress};

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

impl<R: AsyncIo> HyperRuntime for R {
    const HTTP2: bool = false;

    fn hyper_timer() -> impl Timer + Clone + Send + Sync + 'static {
        SmolTimer::new()
    }
}

impl<R: AsyncIo> Network for R {
    type Listener = Listener;
    type Socket = HyperSocket;

    fn listener(listener: ListenerSocket) -> io::Result<Listener> {
        match listener {
            ListenerSocket::Tcp(listener) => Ok(Listener::Tcp(Arc::new(Async::new(listener)?))),
            #[cfg(unix)]
            ListenerSocket::Unix(listener) => Ok(Listener::Unix(Arc::new(Async::new(listener)?))),
        }
    }

    async fn accept(listener: &Listener) -> io::Result<(HyperSocket, PeerAddress)> {
        match listener {
            Listener::Tcp(listener) => {
                let (socket, address) = listener.accept().await?;
                let socket = VectoredIo(FuturesIo::new(Socket::tcp(socket.into())));
                Ok((HyperSocket::new(socket), PeerAddress::Tcp(address)))
            }
            #[cfg(unix)]
            Listener::Unix(listener) => {
                let (socket, _) = listener.accept().await?;
                let peer = PeerAddress::of_unix(socket.get_ref());
                let socket = VectoredIo(FuturesIo::new(Socket::unix(socket.into())));
                Ok((HyperSocket::new(socket), peer))
            }
        }
    }
}

/// A stream for hyper. Unlike [`FuturesIo`] it writes several parts at once, so that hyper does not
/// copy a response into a buffer, where its length would no longer be counted.
struct VectoredIo<T>(FuturesIo<T>);

impl<T: AsyncRead + Unpin> Read for VectoredIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, space)
    }
}

impl<T: AsyncWrite + Unpin> Write for VectoredIo<T> {
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
