use std::io::{self, IoSlice};
use std::net::{self, Shutdown, SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};
#[cfg(feature = "http-server")]
use mcp_sansio_async::HyperNetwork;
use mcp_sansio_async::Network;
use smol_hyper::rt::{FuturesIo, SmolTimer};

use crate::SocketStream;
use crate::runtime::AsyncRuntime;

impl Network for AsyncRuntime {
    type Listener = Arc<Async<net::TcpListener>>;
    type Socket = FuturesIo<Accepted>;
    type Stream = SocketStream<TcpStream>;

    fn listener(listener: net::TcpListener) -> io::Result<Self::Listener> {
        Async::new(listener).map(Arc::new)
    }

    async fn accept(listener: &Self::Listener) -> io::Result<(FuturesIo<Accepted>, SocketAddr)> {
        let (socket, address) = Async::<net::TcpListener>::accept(listener).await?;
        // Fails only on a broken socket, which the next read reports.
        let _ = socket.get_ref().set_nodelay(true);
        Ok((FuturesIo::new(Accepted(socket)), address))
    }

    fn stream(socket: FuturesIo<Accepted>) -> SocketStream<TcpStream> {
        socket.into_inner().0.into()
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
pub struct Accepted(Async<TcpStream>);

impl AsyncRead for Accepted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_read(cx, space)
    }
}

impl AsyncWrite for Accepted {
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
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.get_ref().shutdown(Shutdown::Write))
    }
}
