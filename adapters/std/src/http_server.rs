//! The server on HTTP: the blocking version of that of `mcp_sansio_async`.

use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpListener};
#[cfg(unix)]
use std::os::unix::net::UnixListener;
#[cfg(unix)]
use std::path::Path;
use std::time::Duration;

use mcp_sansio::http::{HttpServerOptions, SharedLimit, SharedOptions};
#[cfg(unix)]
use mcp_sansio_async::http_server::UnixSocket;
use mcp_sansio_async::http_server::{self, SharedStore};
use mcp_sansio_async::network::ListenerSocket;
use mcp_sansio_handlers::{Server, ServerHandle};

use crate::background_driver::Worker;
use crate::runtime::{ThreadRuntime, refused_threads};
use crate::{Error, block_on};

/// Concurrent handlers of a server, each with a thread if it has to wait: a number of threads that
/// systems grant a process by default.
const HANDLERS_MAX: usize = 1000;

/// Concurrent connections, each with a thread. Including waiting handlers, this stays within the
/// threads and descriptors that systems grant a process by default.
const CONNECTIONS_MAX: usize = 512;

/// A server on HTTP. All clones share one server. [`HttpListener`] accepts its clients.
///
/// A synchronous handler runs on the thread of its client's connection. An `async` handler that has
/// to wait gets its own thread, where it is polled within a [`block_on`](crate::block_on()).
#[derive(Clone, Debug)]
pub struct HttpService(http_server::HttpService<ThreadRuntime>);

impl HttpService {
    /// Creates a service for a server. A thread handles its deadlines; it ends with the last clone.
    ///
    /// # Errors
    ///
    /// The server's catalog is invalid; the operating system has no entropy or is out of threads.
    pub fn new(server: &Server, options: HttpServerOptions) -> Result<Self, Error> {
        let mut limits = options.limits_ref().clone();
        limits.handlers_max = limits.handlers_max.min(HANDLERS_MAX);
        let refused = refused_threads();
        let service = http_server::HttpService::new(server, options.limits(limits))?;
        if refused_threads() != refused {
            return Err(io::Error::other(
                "cannot start the timer thread: the system is out of threads",
            )
            .into());
        }
        Ok(Self(service))
    }

    /// Creates a service that shares its sessions and streams with other nodes through a store: see
    /// [`HttpServerOptions::shared`]. A thread runs the store.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_shared_store(
        server: &Server,
        options: HttpServerOptions,
        sharing: SharedOptions,
        store: impl SharedStore,
    ) -> Result<Self, Error> {
        let service = Self::new(server, options.shared(sharing))?;
        service.0.run_store(store);
        Ok(service)
    }

    /// Answers health checks at `path`: see
    /// [`HttpService::health`](http_server::HttpService::health).
    #[must_use]
    pub fn health(self, path: impl Into<String>) -> Self {
        Self(self.0.health(path))
    }

    /// Whether [health checks](Self::health) answer 200.
    pub fn set_ready(&self, ready: bool) {
        self.0.set_ready(ready);
    }

    /// Returns a handle to all clients, for use outside of handlers.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.0.handle()
    }

    /// Accepts no more requests, through any clone, and waits until the responses in progress are
    /// complete. Open event streams end.
    ///
    /// Calling it in a handler would deadlock.
    pub fn close(&self) {
        block_on(self.0.close());
    }
}

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
#[derive(Debug)]
pub struct HttpListener(http_server::HttpListener<ThreadRuntime, ListenerSocket>);

impl HttpListener {
    /// Creates a listener that serves on `listener`.
    #[must_use]
    pub fn new(listener: TcpListener) -> Self {
        Self(http_server::HttpListener::new(listener).connections_max(CONNECTIONS_MAX))
    }

    /// Whether the user at the other end of a Unix-domain socket is the caller of its requests:
    /// the principal `uid:1000`, if the system
    /// [reports](mcp_sansio_async::network::PeerAddress::of_unix) the user. A
    /// [protected](Server::protect) server identifies callers by their tokens instead. `true` by
    /// default. Turn it off behind a reverse proxy, which connects as one user for all its clients.
    #[must_use]
    pub fn peer_principals(self, principals: bool) -> Self {
        Self(self.0.peer_principals(principals))
    }

    /// Limits concurrent connections, each with a thread; others wait to be accepted. 512 by
    /// default: including waiting handlers, this stays within the threads and descriptors that
    /// systems grant a process by default.
    #[must_use]
    pub fn connections_max(self, connections: usize) -> Self {
        Self(self.0.connections_max(connections))
    }

    /// Limits concurrent connections of one client: an address (for IPv6, its first 64 bits), or a
    /// user on this computer. Others are refused with 429. A quarter of
    /// [`connections_max`](Self::connections_max) by default, and at most three quarters. Raise
    /// both behind a reverse proxy, whose address all clients share.
    #[must_use]
    pub fn connections_per_caller_max(self, connections: usize) -> Self {
        Self(self.0.connections_per_caller_max(connections))
    }

    /// Limits the bytes of responses above 64 KiB that all connections hold together because
    /// clients have not read them. 256 MiB by default. Above the limit, such a response is replaced
    /// by a 503. Event streams are bounded by
    /// [`ServerLimits::unread_bytes_max`](mcp_sansio::http::ServerLimits) instead.
    #[must_use]
    pub fn held_bytes_max(self, bytes: usize) -> Self {
        Self(self.0.held_bytes_max(bytes))
    }

    /// Sets the same limit for one caller: for the principal of a token or, without one, for an
    /// address or a user of this computer. Above it, the status is 429. A quarter of
    /// [`held_bytes_max`](Self::held_bytes_max) by default, and at most three quarters.
    #[must_use]
    pub fn held_bytes_per_caller_max(self, bytes: usize) -> Self {
        Self(self.0.held_bytes_per_caller_max(bytes))
    }

    /// Returns the limits that the clients of the listener share. Those of the server are in
    /// [`ServerLimits::shared`](mcp_sansio::http::ServerLimits::shared).
    #[must_use]
    pub fn shared_limits(&self) -> [SharedLimit; 2] {
        self.0.shared_limits()
    }

    /// Limits the time for a complete request head, from the start of the connection or the first
    /// byte of a later head. 30 s by default.
    #[must_use]
    pub fn head_timeout(self, time: Duration) -> Self {
        Self(self.0.head_timeout(time))
    }

    /// Limits the time that a connection may have no request, from the last response on. Choose more
    /// than a proxy in front keeps idle connections: it may send a request just when one ends. 5
    /// minutes by default.
    #[must_use]
    pub fn idle_timeout(self, time: Duration) -> Self {
        Self(self.0.idle_timeout(time))
    }

    /// Limits the time for a client to read 16 KiB of its response, or the rest if that is less.
    /// After that, its connection is aborted. 30 s by default, which is 546 bytes a second.
    #[must_use]
    pub fn stall_timeout(self, time: Duration) -> Self {
        Self(self.0.stall_timeout(time))
    }

    /// Limits the time that responses in progress may take after [`BackgroundListener::stop`]. 10 s
    /// by default.
    #[must_use]
    pub fn linger(self, time: Duration) -> Self {
        Self(self.0.linger(time))
    }

    /// Serves on this thread, until the process ends.
    ///
    /// # Errors
    ///
    /// The system cannot register the socket.
    pub fn serve(self, service: HttpService) -> io::Result<()> {
        self.serve_until(service, pending())
    }

    /// Serves on a new thread.
    ///
    /// # Errors
    ///
    /// The system is out of threads.
    pub fn spawn(self, service: HttpService) -> io::Result<BackgroundListener> {
        let address = match self.0.socket() {
            ListenerSocket::Tcp(listener) => Some(listener.local_addr()?),
            #[cfg(unix)]
            ListenerSocket::Unix(_) => None,
        };
        let worker = Worker::spawn("mcp-listener", move |stop| {
            let stopped = stop.until_stopped(pending::<()>());
            self.serve_until(service, async {
                stopped.await;
            })
        });
        Ok(BackgroundListener { worker: worker?, address })
    }

    fn serve_until(
        self,
        service: HttpService,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let listener = self.0.register()?;
        block_on(listener.serve(service.0, shutdown));
        Ok(())
    }
}

#[cfg(unix)]
impl From<UnixListener> for HttpListener {
    /// Leaves the file of the socket to the caller.
    fn from(listener: UnixListener) -> Self {
        Self(http_server::HttpListener::new(listener).connections_max(CONNECTIONS_MAX))
    }
}

#[cfg(unix)]
impl From<UnixSocket> for HttpListener {
    fn from(socket: UnixSocket) -> Self {
        let listener = http_server::HttpListener::on_unix_socket(socket);
        Self(listener.connections_max(CONNECTIONS_MAX))
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
    /// The system could not register the socket.
    pub fn stop(self) -> io::Result<()> {
        self.worker.stop()
    }
}
