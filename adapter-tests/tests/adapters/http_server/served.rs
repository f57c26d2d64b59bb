//! Servers that listen on their own port.

use std::future::Future;
use std::net::SocketAddr;

use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_tokio::{HttpListener, HttpService, Server};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) use super::gate::{HandlerGate, gated};
use super::wire::in_time;

/// The listener type under test.
pub(crate) type Listener = HttpListener;

/// Runs a closure inside the server's runtime.
pub(crate) fn in_runtime<T>(make: impl FnOnce() -> T) -> T {
    make()
}

/// Runs a future in another task of the server's runtime.
pub(crate) async fn on_runtime<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    tokio::spawn(work).await.unwrap()
}

/// A running server.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) service: HttpService,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Served {
    pub(crate) async fn new(server: Server) -> Self {
        Self::with(server, HttpServerOptions::new(), |listener| listener).await
    }

    pub(crate) async fn with(
        server: Server,
        options: HttpServerOptions,
        tune: impl FnOnce(HttpListener) -> HttpListener,
    ) -> Self {
        Self::from_service(HttpService::new(&server, options).unwrap(), tune).await
    }

    pub(crate) async fn from_service(
        service: HttpService,
        tune: impl FnOnce(HttpListener) -> HttpListener,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self::start(service, tune(HttpListener::new(listener)), address)
    }

    // Not generic, so that the server is compiled once.
    fn start(service: HttpService, listener: HttpListener, address: SocketAddr) -> Self {
        let (stop, stopped) = oneshot::channel();
        let serve = listener.serve(service.clone(), async move {
            let _told = stopped.await;
        });
        Self { address, service, stop: Some(stop), task: tokio::spawn(serve) }
    }

    /// Starts the shutdown.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the server has ended.
    pub(crate) async fn ended(self) {
        in_time(self.task).await.unwrap();
    }
}
