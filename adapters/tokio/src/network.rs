use std::net::SocketAddr;
use std::{io, net};

use hyper_util::rt::TokioIo;
#[cfg(feature = "http-server")]
use mcp_sansio_async::HyperNetwork;
use mcp_sansio_async::Network;
use tokio::net::{TcpListener, TcpStream, tcp};

use crate::TokioStream;
use crate::runtime::TokioRuntime;

impl Network for TokioRuntime {
    type Listener = TcpListener;
    type Socket = TokioIo<TcpStream>;
    type Stream = TokioStream<tcp::OwnedReadHalf, tcp::OwnedWriteHalf>;

    fn listener(listener: net::TcpListener) -> io::Result<TcpListener> {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    }

    async fn accept(listener: &TcpListener) -> io::Result<(TokioIo<TcpStream>, SocketAddr)> {
        let (socket, address) = listener.accept().await?;
        // Fails only on a broken socket, which the next read reports.
        let _ = socket.set_nodelay(true);
        Ok((TokioIo::new(socket), address))
    }

    fn stream(socket: TokioIo<TcpStream>) -> Self::Stream {
        socket.into_inner().into()
    }
}

#[cfg(feature = "http-server")]
impl HyperNetwork for TokioRuntime {
    const HTTP2: bool = true;

    fn hyper_timer() -> impl hyper::rt::Timer + Clone + Send + Sync + 'static {
        hyper_util::rt::TokioTimer::new()
    }
}
