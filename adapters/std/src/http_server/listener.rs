use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use mcp_sansio::http::HttpServerOptions;
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
    listener: TcpListener,
    connections_max: usize,
    timeouts: Timeouts,
    linger: Duration,
}

impl HttpListener {
    /// Creates a listener that serves on `listener`.
    #[must_use]
    pub const fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            connections_max: 512,
            timeouts: Timeouts { head: Duration::from_secs(30), stall: Duration::from_secs(30) },
            linger: Duration::from_secs(10),
        }
    }

    /// Limits concurrent connections, each with a thread and three descriptors; others wait to be
    /// accepted. 512 by default: including waiting handlers, this stays within the threads and
    /// descriptors that systems grant a process by default.
    #[must_use]
    pub const fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections;
        self
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
        let address = self.listener.local_addr()?;
        let run = move |stop: &StopHandle| self.run(&service, stop);
        Ok(BackgroundListener { worker: Worker::spawn("mcp-listener", run)?, address })
    }

    fn run(self, service: &HttpService, stop: &StopHandle) -> io::Result<()> {
        let Self { listener, connections_max, timeouts, linger } = self;
        let listener = ThreadRuntime::listener(listener)?;
        // No limit of its own, since connections are limited: a thread may still be ending after
        // its connection has closed. If no thread can be started, the client sees the connection
        // close, and may retry.
        let runtime = ThreadRuntime::new("mcp-http", usize::MAX);
        let mut acceptor = Acceptor::new(runtime, listener);
        (acceptor.connections_max, acceptor.linger) = (connections_max, linger);
        let stopped = async { stop.until_stopped(pending()).await.unwrap_or_default() };
        let serve = move |stream, service, stop, permit| async move {
            connection::serve(Socket::new(stream, timeouts.stall), service, stop, timeouts).await;
            drop::<Permit>(permit);
        };
        block_on(acceptor.serve(&service.0, stopped, serve))
    }
}

/// A listener that is served on its own thread.
///
/// Dropping it stops it like [`stop`](Self::stop).
#[derive(Debug)]
pub struct BackgroundListener {
    worker: Worker<io::Error>,
    address: SocketAddr,
}

impl BackgroundListener {
    /// Returns the local address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
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
