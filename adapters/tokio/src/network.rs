use std::net::SocketAddr;
use std::{io, net};

use hyper_util::rt::TokioIo;
use mcp_sansio_async::Network;
use tokio::net::{TcpListener, TcpStream};

use crate::runtime::TokioRuntime;

impl Network for TokioRuntime {
    type Listener = TcpListener;
    type Socket = TokioIo<TcpStream>;

    const HTTP2: bool = true;

    fn listener(listener: net::TcpListener) -> io::Result<TcpListener> {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    }

    async fn accept(listener: &TcpListener) -> io::Result<(TokioIo<TcpStream>, SocketAddr)> {
        let (socket, address) = listener.accept().await?;
        // It would fail on a socket that is broken already, and then reading says so.
        let _ = socket.set_nodelay(true);
        Ok((TokioIo::new(socket), address))
    }

    fn hyper_timer() -> impl hyper::rt::Timer + Clone + Send + Sync + 'static {
        hyper_util::rt::TokioTimer::new()
    }
}
