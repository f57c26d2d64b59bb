use std::fmt;
use std::future::Future;
use std::io;
use std::net::{self, SocketAddr};

use crate::{ByteStream, Runtime};

/// TCP of a runtime.
pub trait Network: Runtime {
    /// A listening socket.
    type Listener: fmt::Debug + Send + Sync + 'static;

    /// A connection as a socket of the runtime.
    type Socket: fmt::Debug + Send + Unpin + 'static;

    /// A connection as a byte stream.
    type Stream: ByteStream + fmt::Debug + Send + Unpin + 'static;

    /// Converts a listener of the standard library.
    ///
    /// # Errors
    ///
    /// The system is out of resources.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`] does.
    fn listener(listener: net::TcpListener) -> io::Result<Self::Listener>;

    /// Accepts a connection, with small writes sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    ///
    /// Accepting failed; the next attempt may succeed.
    fn accept(
        listener: &Self::Listener,
    ) -> impl Future<Output = io::Result<(Self::Socket, SocketAddr)>> + Send;

    /// Converts a connection to a byte stream.
    fn stream(socket: Self::Socket) -> Self::Stream;
}

/// TCP of a runtime for HTTP servers, as hyper needs it.
#[cfg(feature = "http-listener")]
pub trait HyperNetwork: Network<Socket: hyper::rt::Read + hyper::rt::Write> {
    /// Whether listeners also speak HTTP/2, with the feature `http2-listener`.
    const HTTP2: bool;

    /// Returns the runtime's timer for hyper.
    fn hyper_timer() -> impl hyper::rt::Timer + Clone + Send + Sync + 'static;
}
