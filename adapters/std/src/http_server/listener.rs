use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpListener};
#[cfg(unix)]
use std::os::unix::net::UnixListener;
#[cfg(unix)]
use std::path::Path;
use std::time::Duration;

use mcp_sansio::http::{HttpServerOptions, SharedLimit, SharedResource};
use mcp_sansio_async::http_server::{Acceptor, Budget, Permit};
use mcp_sansio_async::{ListenerSocket, Network, StopHandle};
#[cfg(unix)]
use mcp_sansio_async::{UnixSocket, UnixSocketFile};
use mcp_sansio_handlers::Server;

use super::socket::Socket;
use super::{HttpService, Timeouts, connection};
use crate::runtime::ThreadRuntime;
use crate::worker::Worker;
use crate::{Error, block_on};

/// Serves HTTP on a listener, at `/mcp`, for clients on this computer, until the process ends.
///
/// For other settings, see [`HttpListener`].
///
/// ```no_run
/// use mcp_sansio_std::{Server, serve_http};
///
/// # fn main() -> Result<(), mcp_sansio_std::Error> {
/// let listener = std::net::TcpListener::bind("127.0.0.1:8000")?;
/// serve_http(Server::new("weather", "1.0.0"), listener)
/// # }
/// ```
///
/// # Errors
///
/// The server's catalog is invalid; the operating system has no entropy, or is out of threads or
/// descriptors.
#[allow(clippy::needless_pass_by_value, reason = "same signature as the other serve functions")]
pub fn serve_http(server: Server, listener: TcpListener) -> Result<(), Error> {
    let service = HttpService::new(&server, HttpServerOptions::new())?;
    Ok(HttpListener::new(listener).serve(service)?)
}

/// Serves HTTP on a new Unix-domain socket at `path`, for processes of the same user, until the
/// process ends. Clients use the URL `http://localhost/mcp`; `uid:1000`, for example, is the
/// [`Principal`](crate::Principal) of their requests.
///
/// For other settings, create an [`HttpListener`] from a [`UnixSocket`].
///
/// # Errors
///
/// The socket cannot be [bound](UnixSocket::bind), for example because another server listens on
/// it; the server's catalog is invalid; the operating system has no entropy, or is out of threads
/// or descriptors.
#[cfg(unix)]
#[allow(clippy::needless_pass_by_value, reason = "same signature as the other serve functions")]
pub fn serve_http_unix(server: Server, path: impl AsRef<Path>) -> Result<(), Error> {
    let service = HttpService::new(&server, HttpServerOptions::new())?;
    Ok(HttpListener::from(UnixSocket::bind(path)?).serve(service)?)
}

/// Accepts connections and serves HTTP/1.1 on them, each on its own thread.
///
/// A client that closes its write side before the response is complete counts as disconnected,
/// since the two cannot be distinguished. A running synchronous handler is not notified.
///
/// A request head may have at most 64 KiB and 100 fields. Ambiguous input, which this server and a
/// proxy before it could interpret differently, is refused: contradictory lengths, folded lines,
/// invalid line endings.
#[derive(Debug)]
pub struct HttpListener {
    // Dropped before the listener: see `UnixSocketFile`.
    #[cfg(unix)]
    socket_file: Option<UnixSocketFile>,
    listener: ListenerSocket,
    connections_max: usize,
    connections_per_caller_max: Option<usize>,
    held_bytes_max: usize,
    held_bytes_per_caller_max: Option<usize>,
    timeouts: Timeouts,
    linger: Duration,
    peer_principals: bool,
}

impl HttpListener {
    /// Creates a listener that serves on `listener`.
    #[must_use]
    pub const fn new(listener: TcpListener) -> Self {
        Self::with_socket(ListenerSocket::Tcp(listener))
    }

    const fn with_socket(listener: ListenerSocket) -> Self {
        Self {
            #[cfg(unix)]
            socket_file: None,
            listener,
            connections_max: 512,
            connections_per_caller_max: None,
            held_bytes_max: 256 * 1024 * 1024,
            held_bytes_per_caller_max: None,
            timeouts: Timeouts { head: Duration::from_secs(30), stall: Duration::from_secs(30) },
            linger: Duration::from_secs(10),
            peer_principals: true,
        }
    }

    /// Whether the user at the other end of a Unix-domain socket is the caller of its requests:
    /// the principal `uid:1000`, if the system [reports](mcp_sansio_async::PeerAddress::of_unix) the user. A
    /// [protected](Server::protect) server identifies callers by their tokens instead. `true` by
    /// default. Turn it off behind a reverse proxy, which connects as one user for all its clients.
    #[must_use]
    pub const fn peer_principals(mut self, principals: bool) -> Self {
        self.peer_principals = principals;
        self
    }

    /// Limits concurrent connections, each with a thread and three descriptors; others wait to be
    /// accepted. 512 by default: including waiting handlers, this stays within the threads and
    /// descriptors that systems grant a process by default.
    #[must_use]
    pub const fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections;
        self
    }

    /// Limits concurrent connections of one client: an address (for IPv6, its first 64 bits), or a
    /// user on this computer. Others are refused with 429. A quarter of
    /// [`connections_max`](Self::connections_max) by default, and at most three quarters. Raise both
    /// behind a reverse proxy, whose address all clients share.
    #[must_use]
    pub const fn connections_per_caller_max(mut self, connections: usize) -> Self {
        self.connections_per_caller_max = Some(connections);
        self
    }

    /// Limits the bytes of responses above 64 KiB that all connections hold together because clients
    /// have not read them. 256 MiB by default. Above the limit, such a response is replaced by a 503.
    /// Event streams are bounded by
    /// [`ServerLimits::unread_bytes_max`](mcp_sansio::http::ServerLimits) instead.
    #[must_use]
    pub const fn held_bytes_max(mut self, bytes: usize) -> Self {
        self.held_bytes_max = bytes;
        self
    }

    /// Sets the same limit for one caller: for the principal of a token or, without one, for an
    /// address or a user of this computer. Above it, the status is 429. A quarter of
    /// [`held_bytes_max`](Self::held_bytes_max) by default, and at most three quarters.
    #[must_use]
    pub const fn held_bytes_per_caller_max(mut self, bytes: usize) -> Self {
        self.held_bytes_per_caller_max = Some(bytes);
        self
    }

    /// Returns the limits that the clients of the listener share. Those of the server are in
    /// [`ServerLimits::shared`](mcp_sansio::http::ServerLimits::shared).
    #[must_use]
    pub fn shared_limits(&self) -> [SharedLimit; 2] {
        let quarter_unless =
            |share: Option<usize>, total: usize| share.unwrap_or_else(|| (total / 4).max(1));
        let (connections, bytes) = (self.connections_max, self.held_bytes_max);
        let own_connections = quarter_unless(self.connections_per_caller_max, connections);
        let own_bytes = quarter_unless(self.held_bytes_per_caller_max, bytes);
        [
            SharedLimit::new(SharedResource::Connections, connections, own_connections),
            SharedLimit::new(SharedResource::ResponseBytes, bytes, own_bytes),
        ]
    }

    /// Limits the time for a complete request head, from the start of the connection or the last
    /// response. 30 s by default.
    #[must_use]
    pub const fn head_timeout(mut self, time: Duration) -> Self {
        self.timeouts.head = time;
        self
    }

    /// Limits the time for a client to read 16 KiB of its response, or the rest if that is less.
    /// After that, its connection is aborted. 30 s by default, which is 546 bytes a second.
    #[must_use]
    pub const fn stall_timeout(mut self, time: Duration) -> Self {
        self.timeouts.stall = time;
        self
    }

    /// Limits the time that responses in progress may take after [`BackgroundListener::stop`]. 10 s
    /// by default.
    #[must_use]
    pub const fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Serves on this thread, until the process ends.
    ///
    /// # Errors
    ///
    /// The system is out of descriptors.
    pub fn serve(self, service: HttpService) -> io::Result<()> {
        self.run(&service, &StopHandle::default())
    }

    /// Serves on a new thread.
    ///
    /// # Errors
    ///
    /// The system is out of threads.
    pub fn spawn(self, service: HttpService) -> io::Result<BackgroundListener> {
        let address = match &self.listener {
            ListenerSocket::Tcp(listener) => Some(listener.local_addr()?),
            #[cfg(unix)]
            ListenerSocket::Unix(_) => None,
        };
        let run = move |stop: &StopHandle| self.run(&service, stop);
        Ok(BackgroundListener { worker: Worker::spawn("mcp-listener", run)?, address })
    }

    fn run(self, service: &HttpService, stop: &StopHandle) -> io::Result<()> {
        let [connections, held] = self.shared_limits();
        let Self { listener, timeouts, linger, peer_principals, .. } = self;
        let listener = ThreadRuntime::listener(listener)?;
        // No limit of its own, since connections are limited: a thread may still be ending after
        // its connection has closed. If no thread can be started, the client sees the connection
        // close, and may retry.
        let runtime = ThreadRuntime::new("mcp-http", usize::MAX);
        let mut acceptor = Acceptor::new(runtime, listener);
        (acceptor.connections_max, acceptor.linger) = (connections.total, linger);
        acceptor.connections_per_caller_max = Some(connections.per_caller);
        acceptor.peer_principals = peer_principals;
        #[cfg(unix)]
        let file = self.socket_file;
        let stopped = async move {
            stop.until_stopped(pending::<()>()).await;
            #[cfg(unix)]
            drop(file);
        };
        let budget = Budget::new(held);
        let serve = move |stream, service, stop, permit| {
            let budget = budget.connection(&service, usize::MAX);
            async move {
                let socket = Socket::new(stream, timeouts.stall);
                connection::serve(socket, service, stop, timeouts, &budget).await;
                drop::<Permit>(permit);
            }
        };
        block_on(acceptor.serve(&service.0, stopped, serve))
    }
}

#[cfg(unix)]
impl From<UnixListener> for HttpListener {
    /// Leaves the file of the socket to the caller.
    fn from(listener: UnixListener) -> Self {
        Self::with_socket(listener.into())
    }
}

#[cfg(unix)]
impl From<UnixSocket> for HttpListener {
    fn from(socket: UnixSocket) -> Self {
        let (listener, file) = socket.into_parts();
        Self { socket_file: Some(file), ..Self::from(listener) }
    }
}

/// A listener that is served on its own thread.
///
/// Dropping it stops it like [`stop`](Self::stop).
#[derive(Debug)]
pub struct BackgroundListener {
    worker: Worker<io::Error>,
    address: Option<SocketAddr>,
}

impl BackgroundListener {
    /// Returns the local address; `None` for a Unix-domain socket.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Accepts no more connections, closes the service for all its clones, and waits until the
    /// responses in progress are complete or [their time](HttpListener::linger) is up; then they
    /// are aborted. A synchronous handler that is still running is not awaited any longer than
    /// that.
    ///
    /// # Errors
    ///
    /// The listener ended earlier because the system was out of descriptors.
    pub fn stop(self) -> io::Result<()> {
        self.worker.stop()
    }
}
