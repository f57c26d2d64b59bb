//! Sockets of a runtime, as hyper needs them.

mod hyper_socket;

use std::future::Future;
use std::net::{self, SocketAddr};
#[cfg(unix)]
use std::os::unix::net::UnixListener;
use std::{fmt, io};

use hyper::rt::{Read, Write};
use mcp_sansio::Principal;

use crate::{ByteStream, Runtime};

pub use hyper_socket::HyperSocket;

/// A runtime for hyper.
pub trait HyperRuntime: Runtime {
    /// Whether clients and listeners also speak HTTP/2, with the feature `http2`.
    const HTTP2: bool;

    /// Returns the runtime's timer for hyper.
    fn hyper_timer() -> impl hyper::rt::Timer + Clone + Send + Sync + 'static;
}

/// Sockets of a runtime that accept connections.
pub trait Network: HyperRuntime {
    /// A listening socket.
    type Listener: fmt::Debug + Send + Sync + 'static;

    /// A connection.
    type Socket: ByteStream + Read + Write + fmt::Debug + Send + Unpin + 'static;

    /// Converts a listener of the standard library. It may be in either blocking mode.
    ///
    /// # Errors
    ///
    /// The system is out of resources.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`] does.
    fn listener(listener: ListenerSocket) -> io::Result<Self::Listener>;

    /// Accepts a connection; on TCP, small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    ///
    /// Accepting failed; the next attempt may succeed.
    fn accept(
        listener: &Self::Listener,
    ) -> impl Future<Output = io::Result<(Self::Socket, PeerAddress)>> + Send;
}

/// A listening socket of the standard library.
#[derive(Debug)]
pub enum ListenerSocket {
    /// On an address and port.
    Tcp(net::TcpListener),
    /// On a path.
    #[cfg(unix)]
    Unix(UnixListener),
}

impl From<net::TcpListener> for ListenerSocket {
    fn from(listener: net::TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

#[cfg(unix)]
impl From<UnixListener> for ListenerSocket {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

/// The other end of an accepted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerAddress {
    /// A client on TCP.
    Tcp(SocketAddr),
    /// A process on this computer.
    #[cfg(unix)]
    Unix {
        /// Its user id when it connected, if the system reports it.
        uid: Option<u32>,
    },
}

impl PeerAddress {
    /// Returns the peer of a connected Unix-domain socket, as the system reports it. The user id is
    /// known on Linux and Android.
    #[cfg(unix)]
    #[must_use]
    pub fn of_unix(socket: impl std::os::fd::AsFd) -> Self {
        #[cfg(any(target_os = "android", target_os = "linux"))]
        let uid = rustix::net::sockopt::socket_peercred(socket).ok().map(|it| it.uid.as_raw());
        #[cfg(not(any(target_os = "android", target_os = "linux")))]
        let uid = {
            let _ = socket;
            None
        };
        Self::Unix { uid }
    }

    /// Returns the principal of the peer's user: `uid:1000`. `None` on TCP, and where the system
    /// does not report the user.
    #[must_use]
    pub fn principal(&self) -> Option<Principal> {
        match self {
            #[cfg(unix)]
            Self::Unix { uid: Some(uid) } => Some(Principal::new(format!("uid:{uid}"))),
            _ => None,
        }
    }
}
