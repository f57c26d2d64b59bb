use std::fmt;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::net;
#[cfg(unix)]
use std::os::unix::net::UnixListener;
use std::time::Duration;

use mcp_sansio::http::{SharedLimit, SharedResource};

use super::acceptor::{connection_limit, quarter_unless};
use super::connection::{Settings, serve_connection};
use super::{Acceptor, Budget, Http2Timeouts, HttpService};
use crate::network::{ListenerSocket, Network};
#[cfg(unix)]
use crate::network::{UnixSocket, UnixSocketFile};

/// Accepts connections and serves HTTP/1.1 on them, and HTTP/2 if the runtime [supports
/// it](crate::network::HyperRuntime::HTTP2), for applications without a web framework.
///
/// A client that closes its write side of an HTTP/1.1 connection before the response is complete
/// counts as disconnected, since the two cannot be distinguished.
///
/// `L` is the type of the socket: registered with the runtime, or a [`ListenerSocket`] that is yet
/// to be [registered](HttpListener::register).
pub struct HttpListener<N: Network, L = <N as Network>::Listener> {
    // Dropped before the listener: see `UnixSocketFile`.
    #[cfg(unix)]
    socket_file: Option<UnixSocketFile>,
    listener: L,
    runtime: PhantomData<fn() -> N>,
    connections_max: usize,
    connections_per_caller_max: Option<usize>,
    settings: Settings,
    held_bytes_max: usize,
    held_bytes_per_caller_max: Option<usize>,
    linger: Duration,
    peer_principals: bool,
}

impl<N: Network, L> HttpListener<N, L> {
    /// Creates a listener that serves on `listener`.
    #[must_use]
    pub fn new(listener: impl Into<L>) -> Self {
        Self {
            #[cfg(unix)]
            socket_file: None,
            listener: listener.into(),
            runtime: PhantomData,
            connections_max: 16_384,
            connections_per_caller_max: None,
            settings: Settings {
                head_timeout: Http2Timeouts::DEFAULT.head,
                stall_timeout: Http2Timeouts::DEFAULT.stall,
                idle_timeout: Http2Timeouts::DEFAULT.idle,
                connection_bytes_max: 16 * 1024 * 1024,
                concurrent_streams_max: 128,
            },
            held_bytes_max: 256 * 1024 * 1024,
            held_bytes_per_caller_max: None,
            linger: Duration::from_secs(10),
            peer_principals: true,
        }
    }

    /// Whether the user at the other end of a Unix-domain socket is the caller of its requests:
    /// the principal `uid:1000`, if the system [reports](crate::network::PeerAddress::of_unix) the user. A
    /// [protected](mcp_sansio_handlers::Server::protect) server identifies callers by their tokens
    /// instead. `true` by default. Turn it off behind a reverse proxy, which connects as one user
    /// for all its clients.
    #[must_use]
    pub const fn peer_principals(mut self, principals: bool) -> Self {
        self.peer_principals = principals;
        self
    }

    /// Limits concurrent connections; others wait to be accepted. 16,384 by default: at worst three
    /// gigabytes of buffers, some 200 KiB each, in addition to
    /// [`held_bytes_max`](Self::held_bytes_max) and the bodies of requests.
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

    /// Limits the bytes that all connections hold together for pending HTTP/2 requests and for
    /// responses that clients have not read, including the overhead of their memory; the buffers of
    /// each connection come on top. 256 MiB by default. Above the limit, HTTP/2 requests are
    /// refused with 503 before any work is done, and responses above 64 KiB on HTTP/1.1 and all
    /// responses on HTTP/2 are replaced by a 503.
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
        let share = quarter_unless(self.held_bytes_per_caller_max, self.held_bytes_max);
        [
            connection_limit(self.connections_max, self.connections_per_caller_max),
            SharedLimit::new(SharedResource::ResponseBytes, self.held_bytes_max, share),
        ]
    }

    /// Sets the same limit for one HTTP/2 connection. 16 MiB by default. Above it, the status is
    /// 429.
    #[must_use]
    pub const fn connection_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.connection_bytes_max = bytes;
        self
    }

    /// Limits concurrent streams on an HTTP/2 connection. 128 by default: RFC 9113 recommends 100
    /// or more.
    #[must_use]
    pub const fn max_concurrent_streams(mut self, streams: u32) -> Self {
        self.settings.concurrent_streams_max = streams;
        self
    }

    /// Limits the time for a complete request head, from the start of the connection or the last
    /// response. On HTTP/2 it applies to the first request. 30 s by default.
    #[must_use]
    pub const fn head_timeout(mut self, time: Duration) -> Self {
        self.settings.head_timeout = time;
        self
    }

    /// Limits the time for a client to read 16 KiB of its response, or the rest if that is less.
    /// After that, an HTTP/2 stream is reset and an HTTP/1.1 connection is aborted. 30 s by
    /// default, which is 546 bytes a second.
    #[must_use]
    pub const fn stall_timeout(mut self, time: Duration) -> Self {
        self.settings.stall_timeout = time;
        self
    }

    /// Limits the time that an HTTP/2 connection may have no stream, even if it answers PINGs. The
    /// client then gets a GOAWAY, and the connection ends [`stall_timeout`](Self::stall_timeout)
    /// later if the client does not end it. 5 minutes by default. On HTTP/1.1
    /// [`head_timeout`](Self::head_timeout) has this effect.
    #[must_use]
    pub const fn idle_timeout(mut self, time: Duration) -> Self {
        self.settings.idle_timeout = time;
        self
    }

    /// Limits the time that responses in progress may take after `shutdown`. 10 s by default.
    #[must_use]
    pub const fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Returns the socket.
    #[must_use]
    pub const fn socket(&self) -> &L {
        &self.listener
    }
}

impl<N: Network> HttpListener<N> {
    /// Serves until `shutdown` completes, and then until the responses in progress are complete or
    /// their time is up. This closes the service for all its clones: see [`HttpService::close`].
    /// Dropping the future aborts all connections.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`](crate::Runtime::current) does.
    pub async fn serve(self, service: HttpService<N>, shutdown: impl Future<Output = ()>) {
        let [_, held] = self.shared_limits();
        let Self { listener, connections_max, settings, linger, peer_principals, .. } = self;
        let connections_per_caller_max = self.connections_per_caller_max;
        #[cfg(unix)]
        let shutdown = {
            let file = self.socket_file;
            async move {
                shutdown.await;
                drop(file);
            }
        };
        let (runtime, budget) = (N::current(), Budget::new(held));
        let theirs = runtime.clone();
        let mut acceptor = Acceptor::new(runtime, listener);
        (acceptor.connections_max, acceptor.linger) = (connections_max, linger);
        acceptor.connections_per_caller_max = connections_per_caller_max;
        acceptor.peer_principals = peer_principals;
        let serve = move |socket, service, stop, permit| {
            let (runtime, budget) = (theirs.clone(), budget.clone());
            serve_connection(socket, service, runtime, stop, settings, budget, permit)
        };
        acceptor.serve(&service, shutdown, serve).await;
    }
}

impl<N: Network> HttpListener<N, ListenerSocket> {
    /// Registers the socket with the runtime.
    ///
    /// # Errors
    ///
    /// The system is out of resources.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`](crate::Runtime::current) does.
    pub fn register(self) -> io::Result<HttpListener<N>> {
        Ok(HttpListener {
            #[cfg(unix)]
            socket_file: self.socket_file,
            listener: N::listener(self.listener)?,
            runtime: PhantomData,
            connections_max: self.connections_max,
            connections_per_caller_max: self.connections_per_caller_max,
            settings: self.settings,
            held_bytes_max: self.held_bytes_max,
            held_bytes_per_caller_max: self.held_bytes_per_caller_max,
            linger: self.linger,
            peer_principals: self.peer_principals,
        })
    }

    /// Creates a listener on a Unix-domain socket, whose file is removed when the listener stops.
    #[cfg(unix)]
    #[must_use]
    pub fn on_unix_socket(socket: UnixSocket) -> Self {
        let (listener, file) = socket.into_parts();
        Self { socket_file: Some(file), ..Self::new(listener) }
    }
}

impl<N: Network> TryFrom<net::TcpListener> for HttpListener<N> {
    type Error = io::Error;

    /// Fails if the system is out of resources, and panics where
    /// [`Runtime::current`](crate::Runtime::current) does.
    fn try_from(listener: net::TcpListener) -> io::Result<Self> {
        HttpListener::<N, ListenerSocket>::new(listener).register()
    }
}

#[cfg(unix)]
impl<N: Network> TryFrom<UnixListener> for HttpListener<N> {
    type Error = io::Error;

    /// Leaves the file of the socket to the caller. Fails if the system is out of resources, and
    /// panics where [`Runtime::current`](crate::Runtime::current) does.
    fn try_from(listener: UnixListener) -> io::Result<Self> {
        HttpListener::<N, ListenerSocket>::new(listener).register()
    }
}

#[cfg(unix)]
impl<N: Network> TryFrom<UnixSocket> for HttpListener<N> {
    type Error = io::Error;

    /// Fails if the system is out of resources, and panics where
    /// [`Runtime::current`](crate::Runtime::current) does.
    fn try_from(socket: UnixSocket) -> io::Result<Self> {
        HttpListener::on_unix_socket(socket).register()
    }
}

impl<N: Network, L: fmt::Debug> fmt::Debug for HttpListener<N, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpListener").field("listener", &self.listener).finish_non_exhaustive()
    }
}
