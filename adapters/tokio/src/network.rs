use std::io;

use hyper_util::rt::TokioIo;
use mcp_sansio_async::network::{HyperRuntime, HyperSocket, ListenerSocket, Network, PeerAddress};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;

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

impl Network for TokioRuntime {
    type Listener = Listener;
    type Socket = HyperSocket;

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

    async fn accept(listener: &Listener) -> io::Result<(HyperSocket, PeerAddress)> {
        match listener {
            Listener::Tcp(listener) => {
                let (socket, address) = listener.accept().await?;
                // Fails only on a broken socket, which the next read reports.
                let _ = socket.set_nodelay(true);
                Ok((HyperSocket::new(TokioIo::new(socket)), PeerAddress::Tcp(address)))
            }
            #[cfg(unix)]
            Listener::Unix(listener) => {
                let (socket, _) = listener.accept().await?;
                let peer = PeerAddress::of_unix(&socket);
                Ok((HyperSocket::new(TokioIo::new(socket)), peer))
            }
        }
    }
}

impl HyperRuntime for TokioRuntime {
    const HTTP2: bool = true;

    fn hyper_timer() -> impl hyper::rt::Timer + Clone + Send + Sync + 'static {
        hyper_util::rt::TokioTimer::new()
    }
}
