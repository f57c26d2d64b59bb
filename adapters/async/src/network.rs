use std::fmt;
use std::future::Future;
use std::io;
use std::net::{self, SocketAddr};

use crate::{ByteStream, Runtime};

/// TCP on a runtime.
pub trait Network: Runtime {
    /// A socket that listens.
    type Listener: fmt::Debug + Send + Sync + 'static;

    /// A connection, as the runtime has it.
    type Socket: fmt::Debug + Send + Unpin + 'static;

    /// A connection, as bytes.
    type Stream: ByteStream + fmt::Debug + Send + Unpin + 'static;

    /// Takes a listener of the standard library.
    ///
    /// # Errors
    ///
    /// The system is out of something.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`] does.
    fn listener(listener: net::TcpListener) -> io::Result<Self::Listener>;

    /// Accepts a connection, which sends small writes at once (`TCP_NODELAY`).
    ///
    /// # Errors
    ///
    /// It failed, and the next one may not.
    fn accept(
        listener: &Self::Listener,
    ) -> impl Future<Output = io::Result<(Self::Socket, SocketAddr)>> + Send;

    /// The bytes of a connection.
    fn stream(socket: Self::Socket) -> Self::Stream;
}

/// TCP on a runtime, as hyper takes it for servers on HTTP.
#[cfg(feature = "http-listener")]
pub trait HyperNetwork: Network<Socket: hyper::rt::Read + hyper::rt::Write> {
    /// Whether listeners speak HTTP/2 as well, with the feature `http2-listener`.
    const HTTP2: bool;

    /// The runtime's timer, as hyper takes it.
    fn hyper_timer() -> impl hyper::rt::Timer + Clone + Send + Sync + 'static;
}
