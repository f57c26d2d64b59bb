use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
#[cfg(feature = "http-server")]
use mcp_sansio_async::HyperNetwork;
use mcp_sansio_async::{ListenerSocket, Network, PeerAddress};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

use crate::TokioStream;
use crate::runtime::TokioRuntime;

/// A listening socket.
#[derive(Debug)]
#[non_exhaustive]
pub enum Listener {
    /// On an address and port.
    Tcp(TcpListener),
    /// On a path.
    #[cfg(unix)]
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

#[cfg(unix)]
impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

/// An accepted connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Socket {
    /// From a TCP listener.
    Tcp(TcpStream),
    /// From a Unix-domain socket.
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Network for TokioRuntime {
    type Listener = Listener;
    type Socket = TokioIo<Socket>;
    type Stream = TokioStream<ReadHalf<Socket>, WriteHalf<Socket>>;

    fn listener(listener: ListenerSocket) -> io::Result<Listener> {
        match listener {
            ListenerSocket::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener).map(Listener::Tcp)
            }
            #[cfg(unix)]
            ListenerSocket::Unix(listener) => {
                listener.set_nonblocking(true)?;
                UnixListener::from_std(listener).map(Listener::Unix)
            }
        }
    }

    async fn accept(listener: &Listener) -> io::Result<(TokioIo<Socket>, PeerAddress)> {
        let (socket, peer) = match listener {
            Listener::Tcp(listener) => {
                let (socket, address) = listener.accept().await?;
                // Fails only on a broken socket, which the next read reports.
                let _ = socket.set_nodelay(true);
                (Socket::Tcp(socket), PeerAddress::Tcp(address))
            }
            #[cfg(unix)]
            Listener::Unix(listener) => {
                let (socket, _) = listener.accept().await?;
                let peer = PeerAddress::of_unix(&socket);
                (Socket::Unix(socket), peer)
            }
        };
        Ok((TokioIo::new(socket), peer))
    }

    fn stream(socket: TokioIo<Socket>) -> Self::Stream {
        let (reader, writer) = tokio::io::split(socket.into_inner());
        TokioStream::new(reader, writer)
    }
}

#[cfg(feature = "http-server")]
impl HyperNetwork for TokioRuntime {
    const HTTP2: bool = true;

    fn hyper_timer() -> impl hyper::rt::Timer + Clone + Send + Sync + 'static {
        hyper_util::rt::TokioTimer::new()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_read(cx, space),
            #[cfg(unix)]
            Self::Unix(socket) => Pin::new(socket).poll_read(cx, space),
        }
    }
}

impl AsyncWrite for Socket {
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

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing is buffered.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_shutdown(cx),
            #[cfg(unix)]
            Self::Unix(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}
