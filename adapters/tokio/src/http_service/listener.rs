use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mcp_sansio::handler::Server;
use mcp_sansio::http::ServerOptions;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

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
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    connections_max: usize,
    head_time: Duration,
    linger: Duration,
}

impl HttpListener {
    /// Serves on `listener`.
    #[must_use]
    pub const fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            connections_max: 16_384,
            head_time: Duration::from_secs(30),
            linger: Duration::from_secs(10),
        }
    }

    /// Connections at once; others wait to be accepted. 16,384 by default: some hundred megabytes
    /// at worst.
    #[must_use]
    pub const fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections;
        self
    }

    /// How long the head of a request may take to come. 30 s by default.
    #[must_use]
    pub const fn head_time(mut self, time: Duration) -> Self {
        self.head_time = time;
        self
    }

    /// How long responses under way may take after `shutdown`. 10 s by default.
    #[must_use]
    pub const fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Serves until `shutdown` is done, and then until the responses under way are complete or
    /// their time is over.
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
            let Some((socket, permit)) = accepted else { continue };
            let (service, stopped) = (service.clone(), stopped.clone());
            let head_time = self.head_time;
            connections.spawn(async move {
                serve_connection(socket, service, stopped, head_time).await;
                drop(permit);
            });
        }
        drop(self.listener);
        let all = async {
            service.close().await;
            drop(stop);
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
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((socket, _)) => Some((socket, permit)),
        Err(error) => {
            // Out of descriptors or the like: it passes, but not at once.
            if error.kind() != std::io::ErrorKind::ConnectionAborted {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            None
        }
    }
}

async fn serve_connection(
    socket: TcpStream,
    service: HttpService,
    mut stopped: tokio::sync::watch::Receiver<()>,
    head_time: Duration,
) {
    // Events are small and must not wait for one another; without it streams stall for 40 ms.
    let _set = socket.set_nodelay(true);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head_time);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    let service = hyper_util::service::TowerToHyperService::new(service);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(socket), service));
    tokio::select! {
        // A connection that fails concerns nobody else.
        _ended = connection.as_mut() => return,
        _ = stopped.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ended = connection.await;
}
