use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_io::Async;
use futures_lite::future;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use mcp_sansio::http::ServerOptions;
use mcp_sansio_async::Runtime as _;
use mcp_sansio_async::http_server::{Budget, Cut, SendBody, Socket};
use mcp_sansio_handlers::Server;
use smol_hyper::rt::{FuturesIo, SmolTimer};

use super::accepted::Accepted;
use super::guests::{Guests, Stay};
use crate::runtime::AsyncRuntime;
use crate::timer::timeout;
use crate::{Error, HttpService};

/// Serves HTTP on a listener, at `/mcp`, for clients on this computer, until the process ends.
///
/// The listener is one of the standard library, of smol or of async-std, where that feature is on, or
/// an [`HttpListener`], for more say in it.
///
/// ```no_run
/// use mcp_sansio_async_std::{Server, serve_http};
///
/// # async fn run() -> Result<(), mcp_sansio_async_std::Error> {
/// let listener = std::net::TcpListener::bind("127.0.0.1:8000")?;
/// serve_http(Server::new("weather", "1.0.0"), listener).await
/// # }
/// ```
///
/// # Errors
///
/// The server offers something that it cannot; the operating system has no entropy, or does not take
/// the listener.
pub async fn serve_http<L>(server: Server, listener: L) -> Result<(), Error>
where
    L: TryInto<HttpListener>,
    Error: From<L::Error>,
{
    let listener = listener.try_into()?;
    let service = HttpService::new(&server, ServerOptions::new())?;
    listener.serve(service, pending()).await;
    Ok(())
}

/// Accepts connections and serves HTTP/1.1 on them, for those who have no framework.
///
/// A client that closes its side of a connection before the response is complete has gone: otherwise
/// there would be no telling.
#[derive(Debug)]
pub struct HttpListener {
    listener: Arc<Async<TcpListener>>,
    connections_max: usize,
    times: Times,
    held_bytes_max: usize,
    linger: Duration,
}

/// How long a connection waits for its client.
#[derive(Clone, Copy, Debug)]
struct Times {
    head: Duration,
    stall: Duration,
}

/// What a connection holds of a head, and of a response that its client does not take, in bytes.
const BUFFER: usize = 64 * 1024;

impl HttpListener {
    /// Serves on `listener`: one of smol, or an [`Async`] one. Others are made into an `HttpListener`
    /// with `try_from`.
    #[must_use]
    pub fn new(listener: impl Into<Arc<Async<TcpListener>>>) -> Self {
        Self {
            listener: listener.into(),
            connections_max: 16_384,
            times: Times { head: Duration::from_secs(30), stall: Duration::from_secs(30) },
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

    /// Bytes that all connections hold together of responses above 64 KiB that clients have not taken.
    /// 256 MiB by default. Once there are more, such responses are 503 instead. Streams of events are
    /// bounded by [`ServerLimits::unread_bytes_max`](mcp_sansio::http::server::ServerLimits) instead.
    #[must_use]
    pub const fn held_bytes_max(mut self, bytes: usize) -> Self {
        self.held_bytes_max = bytes;
        self
    }

    /// How long the head of a request may take to come in whole, from the connection's beginning or
    /// the last response on. 30 s by default.
    #[must_use]
    pub const fn head_time(mut self, time: Duration) -> Self {
        self.times.head = time;
        self
    }

    /// How long a client may take for 16 KiB of what is sent to it, or for all of it where that is
    /// less. Its connection is broken off after that. 30 s by default, which is 546 bytes a second.
    #[must_use]
    pub const fn stall_time(mut self, time: Duration) -> Self {
        self.times.stall = time;
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
    pub async fn serve(self, service: HttpService, shutdown: impl Future<Output = ()>) {
        let Self { listener, connections_max, times, held_bytes_max, linger } = self;
        let budget = Budget::new(held_bytes_max);
        let (guests, executor) = (Guests::default(), AsyncRuntime::current());
        let receive = async {
            loop {
                poll_fn(|cx| guests.poll_fewer(connections_max, cx)).await;
                let Some((socket, address)) = accept(&listener).await else { continue };
                let (guest, stay) = guests.receive();
                let service = service.with_remote_address(address);
                let budget = budget.clone();
                let connection =
                    serve_connection(socket, service, executor, guest.leave, times, budget, stay);
                executor.spawn(guest.cut.run(connection));
            }
        };
        future::or(shutdown, receive).await;
        drop(listener);
        // Connections without a request close now, the others after their response.
        guests.dismiss();
        let all = async {
            service.close().await;
            poll_fn(|cx| guests.poll_fewer(1, cx)).await;
        };
        // Whoever takes longer is cut off, when the guests are dropped.
        let _in_time = timeout(linger, all).await;
    }
}

impl From<Async<TcpListener>> for HttpListener {
    fn from(listener: Async<TcpListener>) -> Self {
        Self::new(listener)
    }
}

impl TryFrom<TcpListener> for HttpListener {
    type Error = io::Error;

    /// Fails where the system is out of something.
    fn try_from(listener: TcpListener) -> io::Result<Self> {
        Ok(Self::new(Async::new(listener)?))
    }
}

#[cfg(feature = "smol")]
impl From<smol::net::TcpListener> for HttpListener {
    fn from(listener: smol::net::TcpListener) -> Self {
        Self::new(listener)
    }
}

#[cfg(feature = "async-std")]
impl TryFrom<async_std::net::TcpListener> for HttpListener {
    type Error = io::Error;

    /// Fails where the system is out of something.
    fn try_from(listener: async_std::net::TcpListener) -> io::Result<Self> {
        TcpListener::try_from(listener)?.try_into()
    }
}

/// Accepts a connection. `None`: it failed, and the next one may not.
async fn accept(listener: &Async<TcpListener>) -> Option<(Async<TcpStream>, SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            // Out of descriptors or the like: it passes, but not at once.
            if error.kind() != io::ErrorKind::ConnectionAborted {
                async_io::Timer::after(Duration::from_millis(50)).await;
            }
            None
        }
    }
}

async fn serve_connection(
    socket: Async<TcpStream>,
    service: HttpService,
    executor: AsyncRuntime,
    leave: Cut,
    times: Times,
    budget: Budget,
    _stay: Stay,
) {
    // Events are small and must not wait for one another; without it streams stall for 40 ms.
    let _set = socket.get_ref().set_nodelay(true);
    let budget = &budget;
    let serve = service_fn(|request| {
        let mut served = Box::pin(service.serve(request));
        // It goes when the response is there, which an idle connection would hold it for.
        poll_fn(move |cx| {
            let response = served.as_mut().poll(cx);
            response.map(|response| Ok::<_, Infallible>(SendBody::http1(response, budget)))
        })
    });
    let socket = Socket::new(FuturesIo::new(Accepted(socket)), executor, times.stall);
    let mut builder = http1::Builder::new();
    builder.timer(SmolTimer::new()).header_read_timeout(times.head).max_buf_size(BUFFER);
    let mut connection = pin!(builder.serve_connection(socket, serve));
    let mut leaves = pin!(leave.run(pending::<()>()));
    let mut stops = false;
    poll_fn(|cx| {
        loop {
            // A connection that fails concerns nobody else.
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if stops || leaves.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            stops = true;
            connection.as_mut().graceful_shutdown();
        }
    })
    .await;
}
