use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::handler::Server;
use mcp_sansio::http::ServerOptions;
use mcp_sansio_async::http_server::Cut;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::connection::{Times, serve_connection};
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
    times: Times,
    linger: Duration,
}

impl HttpListener {
    /// Serves on `listener`.
    #[must_use]
    pub const fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            connections_max: 16_384,
            times: Times { head: Duration::from_secs(30), stall: Duration::from_secs(30) },
            linger: Duration::from_secs(10),
        }
    }

    /// Connections at once; others wait to be accepted. 16,384 by default: at worst two gigabytes
    /// of what clients send and do not take, beside the bodies of requests.
    #[must_use]
    pub const fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections;
        self
    }

    /// How long the head of a request may take to come, from the connection's beginning or the last
    /// response on. 30 s by default.
    #[must_use]
    pub const fn head_time(mut self, time: Duration) -> Self {
        self.times.head = time;
        self
    }

    /// How long a client may take nothing of what is sent to it, before its connection is broken
    /// off. 30 s by default.
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
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                accepted = accept(&self.listener, &room) => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Some((socket, address, permit)) = accepted else { continue };
            let (service, stopped) = (service.with_remote_address(address), stopped.clone());
            let connection = serve_connection(socket, service, stopped, self.times, permit);
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
