use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use mcp_sansio::http::ServerOptions;
use mcp_sansio_async::http_server::{Acceptor, Permit};
use mcp_sansio_async::{Network, StopHandle};
use mcp_sansio_handlers::Server;

use super::socket::Socket;
use super::{HttpService, Timeouts, connection};
use crate::runtime::ThreadRuntime;
use crate::worker::Worker;
use crate::{Error, block_on};

/// Serves HTTP on a listener, at `/mcp`, for clients on this computer, until the process ends.
///
/// For more say in it, see [`HttpListener`].
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
/// The server offers something that it cannot; the operating system has no entropy, no thread or no
/// descriptors.
#[allow(clippy::needless_pass_by_value, reason = "as the other functions that serve")]
pub fn serve_http(server: Server, listener: TcpListener) -> Result<(), Error> {
    let service = HttpService::new(&server, ServerOptions::new())?;
    Ok(HttpListener::new(listener).serve(service)?)
}

/// Accepts connections and serves HTTP/1.1 on them, each on a thread of its own.
///
/// A client that closes its side of a connection before the response is complete has gone: otherwise
/// there would be no telling. A plain handler that is at work is not told.
///
/// The head of a request has at most 64 KiB and 100 fields. What can be understood in two ways, by
/// this server and by one before it, is refused: lengths that contradict each other, folded lines,
/// line ends that are none.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    connections_max: usize,
    timeouts: Timeouts,
    linger: Duration,
}

impl HttpListener {
    /// Serves on `listener`.
    #[must_use]
    pub const fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            connections_max: 512,
            timeouts: Timeouts { head: Duration::from_secs(30), stall: Duration::from_secs(30) },
            linger: Duration::from_secs(10),
        }
    }

    /// Connections at once, each with a thread and three descriptors; others wait to be accepted.
    /// 512 by default: with handlers that wait, as many threads and descriptors as systems give a
    /// process without asking.
    #[must_use]
    pub const fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections;
        self
    }

    /// How long the head of a request may take to come in whole, from the connection's beginning or
    /// the last response on. 30 s by default.
    #[must_use]
    pub const fn head_timeout(mut self, time: Duration) -> Self {
        self.timeouts.head = time;
        self
    }

    /// How long a client may take for 16 KiB of what is sent to it, or for all of it where that is
    /// less. Its connection is broken off after that. 30 s by default, which is 546 bytes a second.
    #[must_use]
    pub const fn stall_timeout(mut self, time: Duration) -> Self {
        self.timeouts.stall = time;
        self
    }

    /// How long responses under way may take after [`BackgroundListener::stop`]. 10 s by default.
    #[must_use]
    pub const fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Serves on this thread, until the process ends.
    ///
    /// # Errors
    ///
    /// The system has no descriptors to wait with.
    pub fn serve(self, service: HttpService) -> io::Result<()> {
        self.run(&service, &StopHandle::default())
    }

    /// Serves on a thread of its own.
    ///
    /// # Errors
    ///
    /// The system is out of threads.
    pub fn spawn(self, service: HttpService) -> io::Result<BackgroundListener> {
        let address = self.listener.local_addr()?;
        let run = move |stop: &StopHandle| self.run(&service, stop);
        Ok(BackgroundListener { worker: Worker::spawn("mcp-listener", run)?, address })
    }

    fn run(self, service: &HttpService, stop: &StopHandle) -> io::Result<()> {
        let Self { listener, connections_max, timeouts, linger } = self;
        let listener = ThreadRuntime::listener(listener)?;
        // The bound is the one on connections: a thread is still on its way out when its connection has
        // gone. Without a thread the client sees the connection close, and may come again.
        let runtime = ThreadRuntime::new("mcp-http", usize::MAX);
        let acceptor = Acceptor { runtime, listener, connections_max, linger };
        let stopped = async { stop.until_stopped(pending()).await.unwrap_or_default() };
        let serve = move |stream, service, stop, permit| async move {
            connection::serve(Socket::new(stream, timeouts.stall), service, stop, timeouts).await;
            drop::<Permit>(permit);
        };
        block_on(acceptor.serve(&service.0, stopped, serve))
    }
}

/// A listener that is served on a thread of its own.
///
/// Dropped, it ends as [`stop`](Self::stop) does.
#[derive(Debug)]
pub struct BackgroundListener {
    worker: Worker<io::Error>,
    address: SocketAddr,
}

impl BackgroundListener {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts nothing from here on, closes the service, for all its clones, and waits until the
    /// responses under way are complete or [their time](HttpListener::linger) is over; then they are
    /// broken off. A plain handler that is at work is not waited for any longer than that.
    ///
    /// # Errors
    ///
    /// The system had no descriptors to wait with, and it ended before.
    pub fn stop(self) -> io::Result<()> {
        self.worker.stop()
    }
}
