use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::http::ServerOptions;
use mcp_sansio_async::http_server::{Budget, Cut};
use mcp_sansio_handlers::Server;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::connection::{Settings, serve_connection};
use crate::{Error, HttpService};

/// Serves HTTP on a listener, at `/mcp`, for clients on this computer, until the process ends.
///
/// For more say in it, see [`HttpListener`].
///
/// # Errors
///
/// The server offers something that it cannot; the operating system has no entropy.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
pub async fn serve_http(server: Server, listener: TcpListener) -> Result<(), Error> {
    let service = HttpService::new(&server, ServerOptions::new())?;
    HttpListener::new(listener).serve(service, std::future::pending()).await;
    Ok(())
}

/// Accepts connections and serves HTTP/1.1 and HTTP/2 on them, for those who have no framework.
///
/// A client that closes its side of an HTTP/1.1 connection before the response is complete has
/// gone: otherwise there would be no telling.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    connections_max: usize,
    settings: Settings,
    held_bytes_max: usize,
    linger: Duration,
}

impl HttpListener {
    /// Serves on `listener`.
    #[must_use]
    pub const fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            connections_max: 16_384,
            settings: Settings {
                head_time: Duration::from_secs(30),
                stall_time: Duration::from_secs(30),
                idle_time: Duration::from_secs(5 * 60),
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
    /// others' requests be refused, for [`stall_time`](Self::stall_time) at most.
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
    pub const fn head_time(mut self, time: Duration) -> Self {
        self.settings.head_time = time;
        self
    }

    /// How long a client may take for 16 KiB of what is sent to it, or for all of it where that is
    /// less. A stream of HTTP/2 is reset after that; a connection is broken off. 30 s by default,
    /// which is 546 bytes a second.
    #[must_use]
    pub const fn stall_time(mut self, time: Duration) -> Self {
        self.settings.stall_time = time;
        self
    }

    /// How long a connection of HTTP/2 may go without a stream, even if it answers PINGs. The client
    /// gets a GOAWAY then, and the connection ends [`stall_time`](Self::stall_time) later if the
    /// client does not end it. 5 minutes by default. On HTTP/1.1 [`head_time`](Self::head_time) does
    /// the same.
    #[must_use]
    pub const fn idle_time(mut self, time: Duration) -> Self {
        self.settings.idle_time = time;
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
    /// [`HttpService::close`].
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O and time enabled.
    pub async fn serve(self, service: HttpService, shutdown: impl Future<Output = ()>) {
        let room = Arc::new(Semaphore::new(self.connections_max));
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        let (stop, stopped) = tokio::sync::watch::channel(());
        let budget = Budget::new(self.held_bytes_max);
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                accepted = accept(&self.listener, &room) => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Some((socket, address, permit)) = accepted else { continue };
            let (service, stopped) = (service.with_remote_address(address), stopped.clone());
            let (settings, budget) = (self.settings, budget.clone());
            let connection = serve_connection(socket, service, stopped, settings, budget, permit);
            connections.spawn(Cut::default().run(connection));
        }
        drop(self.listener);
        // Connections without a request close now, the others after their response.
        drop(stop);
        let all = async {
            service.close().await;
            while connections.join_next().await.is_some() {}
        };
        // Whoever takes longer is cut off, when the set of connections is dropped.
        let _in_time = tokio::time::timeout(self.linger, all).await;
    }
}

/// Accepts a connection once there is room for it. `None`: it failed, and the next one may not.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((socket, address)) => Some((socket, address, permit)),
        Err(error) => {
            // Out of descriptors or the like: it passes, but not at once.
            if error.kind() != std::io::ErrorKind::ConnectionAborted {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            None
        }
    }
}
