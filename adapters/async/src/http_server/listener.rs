use std::fmt;
use std::future::Future;
use std::io;
use std::net;
use std::time::Duration;

use super::connection::{Settings, serve_connection};
use super::{Acceptor, Budget, HttpService};
use crate::HyperNetwork;

/// Accepts connections and serves HTTP/1.1 on them, and HTTP/2 where the runtime
/// [has it](HyperNetwork::HTTP2), for those who have no framework.
///
/// A client that closes its side of an HTTP/1.1 connection before the response is complete has
/// gone: otherwise there would be no telling.
pub struct HttpListener<N: HyperNetwork> {
    listener: N::Listener,
    connections_max: usize,
    settings: Settings,
    held_bytes_max: usize,
    linger: Duration,
}

impl<N: HyperNetwork> HttpListener<N> {
    /// Serves on `listener`.
    #[must_use]
    pub fn new(listener: impl Into<N::Listener>) -> Self {
        Self {
            listener: listener.into(),
            connections_max: 16_384,
            settings: Settings {
                head_timeout: Duration::from_secs(30),
                stall_timeout: Duration::from_secs(30),
                idle_timeout: Duration::from_secs(5 * 60),
                connection_bytes_max: 16 * 1024 * 1024,
                concurrent_streams_max: 128,
            },
            held_bytes_max: 256 * 1024 * 1024,
            linger: Duration::from_secs(10),
        }
    }

    /// Connections at once; others wait to be accepted. 16,384 by default: at worst three gigabytes of
    /// buffers, some 200 KiB each, beside [`held_bytes_max`](Self::held_bytes_max) and the bodies of
    /// requests.
    #[must_use]
    pub const fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections;
        self
    }

    /// Bytes that all connections hold together of requests under way on HTTP/2, and of responses that
    /// clients have not taken, with what the memory for them costs; beside it each connection has its
    /// buffers. 256 MiB by default. Once there are more, requests of HTTP/2 are refused with 503, and
    /// so are responses above 64 KiB on HTTP/1.1 and all on HTTP/2. Streams of events are bounded by
    /// [`ServerLimits::unread_bytes_max`](mcp_sansio::http::server::ServerLimits) instead.
    #[must_use]
    pub const fn held_bytes_max(mut self, bytes: usize) -> Self {
        self.held_bytes_max = bytes;
        self
    }

    /// The same for one connection of HTTP/2. 16 MiB by default: sixteen such connections make the
    /// others' requests be refused, for [`stall_timeout`](Self::stall_timeout) at most.
    #[must_use]
    pub const fn connection_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.connection_bytes_max = bytes;
        self
    }

    /// Streams at once on a connection of HTTP/2. 128 by default: RFC 9113 asks for 100 or more.
    #[must_use]
    pub const fn max_concurrent_streams(mut self, streams: u32) -> Self {
        self.settings.concurrent_streams_max = streams;
        self
    }

    /// How long the head of a request may take to come in whole, from the connection's beginning or
    /// the last response on. On HTTP/2 this is the time for the first request. 30 s by default.
    #[must_use]
    pub const fn head_timeout(mut self, time: Duration) -> Self {
        self.settings.head_timeout = time;
        self
    }

    /// How long a client may take for 16 KiB of what is sent to it, or for all of it where that is
    /// less. A stream of HTTP/2 is reset after that; a connection is broken off. 30 s by default,
    /// which is 546 bytes a second.
    #[must_use]
    pub const fn stall_timeout(mut self, time: Duration) -> Self {
        self.settings.stall_timeout = time;
        self
    }

    /// How long a connection of HTTP/2 may go without a stream, even if it answers PINGs. The client
    /// gets a GOAWAY then, and the connection ends [`stall_timeout`](Self::stall_timeout) later if the
    /// client does not end it. 5 minutes by default. On HTTP/1.1 [`head_timeout`](Self::head_timeout) does
    /// the same.
    #[must_use]
    pub const fn idle_timeout(mut self, time: Duration) -> Self {
        self.settings.idle_timeout = time;
        self
    }

    /// How long responses under way may take after `shutdown`. 10 s by default.
    #[must_use]
    pub const fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Serves until `shutdown` is done, and then until the responses under way are complete or
    /// their time is over. This closes the service, for all its clones: see
    /// [`HttpService::close`]. Dropped, it breaks off what is under way.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`](crate::Runtime::current) does.
    pub async fn serve(self, service: HttpService<N>, shutdown: impl Future<Output = ()>) {
        let Self { listener, connections_max, settings, held_bytes_max, linger } = self;
        let (runtime, budget) = (N::current(), Budget::new(held_bytes_max));
        let theirs = runtime.clone();
        let acceptor = Acceptor { runtime, listener, connections_max, linger };
        let serve = move |socket, service, stop, permit| {
            let (runtime, budget) = (theirs.clone(), budget.clone());
            serve_connection(socket, service, runtime, stop, settings, budget, permit)
        };
        acceptor.serve(&service, shutdown, serve).await;
    }
}

impl<N: HyperNetwork> TryFrom<net::TcpListener> for HttpListener<N> {
    type Error = io::Error;

    /// Fails where the system is out of something, and panics where [`Runtime::current`](crate::Runtime::current) does.
    fn try_from(listener: net::TcpListener) -> io::Result<Self> {
        N::listener(listener).map(Self::new)
    }
}

impl<N: HyperNetwork> fmt::Debug for HttpListener<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpListener").field("listener", &self.listener).finish_non_exhaustive()
    }
}
