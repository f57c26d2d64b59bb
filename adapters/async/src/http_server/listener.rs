use std::collections::BTreeMap;
use std::future::{Future, pending, poll_fn};
use std::marker::PhantomData;
#[cfg(unix)]
use std::os::unix::net::UnixListener;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use std::{fmt, io, net};

use mcp_sansio::http::{Exhausted, SharedLimit, SharedResource};

use super::budget::Charge;
use super::connection::{Settings, serve_connection};
use super::http2::Http2Timeouts;
#[cfg(unix)]
use super::unix_socket::{UnixSocket, UnixSocketFile};
use super::{Budget, HttpService, StallGuard, response};
use crate::network::{ListenerSocket, Network};
use crate::runtime::timeout;
use crate::{ByteStream as _, StopHandle};

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
            connections_max: N::CONNECTIONS_MAX,
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
    /// the principal `uid:1000`, if the system [reports](crate::network::PeerAddress::of_unix) the
    /// user. A [protected](mcp_sansio_handlers::Server::protect) server identifies callers by their
    /// tokens instead. `true` by default. Turn it off behind a reverse proxy, which connects as one
    /// user for all its clients.
    #[must_use]
    pub const fn peer_principals(mut self, principals: bool) -> Self {
        self.peer_principals = principals;
        self
    }

    /// Limits concurrent connections; others wait to be accepted. [That of the
    /// runtime](crate::Runtime::CONNECTIONS_MAX) by default: 512 with a thread for each, otherwise
    /// 16,384, which are at worst three gigabytes of buffers, some 200 KiB each, in addition to
    /// [`held_bytes_max`](Self::held_bytes_max) and the bodies of requests.
    #[must_use]
    pub const fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections;
        self
    }

    /// Limits concurrent connections of one client: an address (for IPv6, its first 64 bits), or a
    /// user on this computer. Others are refused with 429. A quarter of
    /// [`connections_max`](Self::connections_max) by default, and at most three quarters. Raise
    /// both behind a reverse proxy, whose address all clients share.
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

    /// Limits the time for a complete request head, from the start of the connection or the first
    /// byte of a later head. On HTTP/2 it applies to the first request. 30 s by default.
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

    /// Limits the time that a connection may have no request, from the last response on. Choose more
    /// than a proxy in front keeps idle connections: it may send a request just when one ends. 5
    /// minutes by default.
    ///
    /// On HTTP/2, PINGs are no requests. The client gets a GOAWAY, and the connection ends
    /// [`stall_timeout`](Self::stall_timeout) later if the client does not end it.
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

mcp_sansio::partial_debug! {
    impl<N: Network, L: fmt::Debug> Debug for HttpListener<N, L> { listener, .. }
}

// ------------------------------------------------------------------ acceptor

/// Accepts connections, up to a limit, and serves each in its own task.
#[derive(Debug)]
#[non_exhaustive]
pub(super) struct Acceptor<N: Network> {
    /// The runtime of the tasks.
    pub runtime: N,
    /// The listener to accept from.
    pub listener: N::Listener,
    /// Concurrent connections; others wait to be accepted. 512 by default, which suits a thread for
    /// each.
    pub connections_max: usize,
    /// Concurrent connections of one client: an address, or a user on this computer. Others are
    /// refused with 429. `None`, the default: a quarter of `connections_max`.
    pub connections_per_caller_max: Option<usize>,
    /// How long connections may last after the shutdown. 10 s by default.
    pub linger: Duration,
    /// Whether the [principal](crate::network::PeerAddress::principal) of a peer is the caller of its
    /// requests. `false` by default.
    pub peer_principals: bool,
}

impl<N: Network> Acceptor<N> {
    /// Creates an acceptor of the connections to `listener`, with tasks on `runtime`.
    #[must_use]
    pub(super) const fn new(runtime: N, listener: N::Listener) -> Self {
        Self {
            runtime,
            listener,
            connections_max: 512,
            connections_per_caller_max: None,
            linger: Duration::from_secs(10),
            peer_principals: false,
        }
    }

    /// Serves until `shutdown` completes, and then until the responses in progress are complete or
    /// `linger` has passed. This closes the service for all its clones. Dropping the future aborts
    /// all connections.
    ///
    /// `serve` serves one connection until it ends or, once stopped through the [`StopHandle`], has
    /// no request in progress; it drops the permit then.
    pub(super) async fn serve<F: Future<Output = ()> + Send + 'static>(
        self,
        service: &HttpService<N>,
        shutdown: impl Future<Output = ()>,
        serve: impl Fn(N::Socket, HttpService<N>, StopHandle, Permit) -> F,
    ) {
        let budget = Budget::new(self.connection_limit());
        let Self { runtime, listener, connections_max, linger, peer_principals, .. } = self;
        let connections = Connections::default();
        let refusing = Arc::new(());
        let accept = async {
            loop {
                poll_fn(|cx| connections.poll_below(connections_max, cx)).await;
                let (socket, peer) = match N::accept(&listener).await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of descriptors or similar: the condition passes, but not immediately.
                        if error.kind() != io::ErrorKind::ConnectionAborted {
                            timeout(&runtime, Duration::from_millis(50), pending::<()>()).await;
                        }
                        continue;
                    }
                };
                let service = service.with_peer(peer, peer_principals);
                // All together were awaited above.
                let counted = budget.connection(&service, usize::MAX).charge_within(1);
                let Ok(counted) = counted else {
                    if Arc::strong_count(&refusing) <= REFUSALS_MAX {
                        let refused = refuse(socket, runtime.clone());
                        let held = Arc::clone(&refusing);
                        runtime.spawn(async move {
                            refused.await;
                            drop(held);
                        });
                    }
                    // A client that never stops connecting leaves time for other tasks.
                    yield_now().await;
                    continue;
                };
                let (connection, permit) = connections.open(counted);
                let serving = serve(socket, service, connection.stop, permit);
                runtime.spawn(connection.abort.run(serving));
            }
        };
        {
            let (mut shutdown, mut accept) = (pin!(shutdown), pin!(accept));
            poll_fn(|cx| match shutdown.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => accept.as_mut().poll(cx),
            })
            .await;
        }
        drop(listener);
        // Idle connections close now, the others after their response.
        connections.stop();
        let all = async {
            service.close().await;
            poll_fn(|cx| connections.poll_below(1, cx)).await;
        };
        // Connections that take longer are aborted when the set is dropped.
        let _in_time = timeout(&runtime, linger, all).await;
    }

    /// Returns the limit on connections.
    #[must_use]
    pub(super) fn connection_limit(&self) -> SharedLimit {
        connection_limit(self.connections_max, self.connections_per_caller_max)
    }
}

/// Returns the limit on connections, where the share of a client is a quarter by default.
pub(super) fn connection_limit(total: usize, per_caller: Option<usize>) -> SharedLimit {
    SharedLimit::new(SharedResource::Connections, total, quarter_unless(per_caller, total))
}

/// Returns a share, which is a quarter of the total by default.
pub(super) fn quarter_unless(per_caller: Option<usize>, total: usize) -> usize {
    per_caller.unwrap_or_else(|| (total / 4).max(1))
}

/// Refuses a connection beyond its client's limit, for any request, and closes it.
async fn refuse<N: Network>(mut stream: N::Socket, runtime: N) {
    let response = SharedResource::Connections.refusal(Exhausted::Share).to_response(None);
    let bytes = response::http1_bytes(&response);
    let send = async {
        let mut rest = &bytes[..];
        poll_fn(|cx| {
            while !rest.is_empty() {
                match ready!(stream.poll_write(cx, rest)) {
                    Ok(count) if count > 0 => rest = &rest[count..],
                    _ => return Poll::Ready(()),
                }
            }
            stream.poll_close(cx).map(drop)
        })
        .await;
    };
    let _in_time = timeout(&runtime, REFUSAL_TIME, send).await;
    // Its request may still arrive.
    let mut lingering = StallGuard::new(runtime, REFUSAL_TIME).linger(1);
    poll_fn(|cx| lingering.poll(cx, |cx, space| stream.poll_read(cx, space))).await;
}

/// Lets other tasks run.
async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Refused connections that are told so at the same time; beyond it, they are closed. 16: a client
/// that stops connecting learns why.
const REFUSALS_MAX: usize = 16;

/// The time for a client to take its refusal: more than a round trip.
const REFUSAL_TIME: Duration = Duration::from_secs(2);

// ------------------------------------------------------------------ connections

/// The connections of a listener. Dropping it aborts them.
#[derive(Debug, Default)]
pub(super) struct Connections(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<u64, Connection>,
    count: u64,
    /// The acceptor, while it waits for a connection to end.
    waiting: Option<Waker>,
}

/// Handles that end a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Connection {
    /// Stops it once it has no pending request.
    pub(super) stop: StopHandle,
    /// Stops it immediately.
    pub(super) abort: StopHandle,
}

/// Counts as an open connection until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    connections: Arc<Mutex<Inner>>,
    number: u64,
    /// Its place in the share of its client, until it is dropped.
    charge: Option<Charge>,
}

impl Connections {
    /// Adds a new connection.
    pub(super) fn open(&self, charge: Charge) -> (Connection, Permit) {
        let mut inner = lock(&self.0);
        inner.count += 1;
        let (connection, number) = (Connection::default(), inner.count);
        inner.open.insert(number, connection.clone());
        (connection, Permit { connections: Arc::clone(&self.0), number, charge: Some(charge) })
    }

    /// Waits until there are fewer than `count` connections.
    pub(super) fn poll_below(&self, count: usize, cx: &Context<'_>) -> Poll<()> {
        let mut inner = lock(&self.0);
        if inner.open.len() < count {
            return Poll::Ready(());
        }
        inner.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Tells all connections to end once they have no pending request.
    pub(super) fn stop(&self) {
        StopHandle::stop_all(&self.all(|connection| &connection.stop));
    }

    fn all(&self, which: impl Fn(&Connection) -> &StopHandle) -> Vec<StopHandle> {
        lock(&self.0).open.values().map(which).cloned().collect()
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        StopHandle::stop_all(&self.all(|connection| &connection.abort));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // Free before the acceptor looks at it.
        drop(self.charge.take());
        let mut inner = lock(&self.connections);
        inner.open.remove(&self.number);
        let waiting = inner.waiting.take();
        drop(inner);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

// A panic elsewhere leaves no inconsistent state.
fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}
