//! Servers that listen on their own port.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;

use adapter_tests::{Runtime, block_on_async_std};
use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_async_std::{HttpListener, HttpService, Server};
use tokio::sync::oneshot;

use super::RUNTIME;
pub(crate) use super::gate::{HandlerGate, gated};
use super::wire::in_time;

/// The listener type under test.
pub(crate) type Listener = HttpListener;

/// Runs a closure inside the server's runtime.
pub(crate) fn in_runtime<T>(make: impl FnOnce() -> T) -> T {
    match RUNTIME {
        Runtime::AsyncStd => block_on_async_std(async { make() }),
        _ => make(),
    }
}

/// Runs a future in another task of the server's runtime.
pub(crate) async fn on_runtime<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
    match RUNTIME {
        Runtime::AsyncStd => async_std::task::spawn(work).await,
        _ => smol::spawn(work).await,
    }
}

/// A running server on a thread of its runtime. The tests themselves run on tokio.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) service: HttpService,
    stop: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<()>,
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
        Self::from_service(Self::service(server, options), tune).await
    }

    pub(crate) async fn from_service(
        service: HttpService,
        tune: impl FnOnce(HttpListener) -> HttpListener,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        Self::start(service, tune(HttpListener::try_from(listener).unwrap()), address)
    }

    // These are not generic, so that the server is compiled once.
    fn service(server: Server, options: HttpServerOptions) -> HttpService {
        in_runtime(|| HttpService::new(&server, options).unwrap())
    }

    fn start(service: HttpService, listener: HttpListener, address: SocketAddr) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (told, ended) = oneshot::channel();
        let serve = listener.serve(service.clone(), async move {
            let _told = stopped.await;
        });
        let serve = async move {
            serve.await;
            let _nobody_listens = told.send(());
        };
        match RUNTIME {
            Runtime::AsyncStd => drop(async_std::task::spawn(serve)),
            _ => smol::spawn(serve).detach(),
        }
        Self { address, service, stop: Some(stop), ended }
    }

    /// Starts the shutdown.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the server has ended.
    pub(crate) async fn ended(self) {
        in_time(self.ended).await.unwrap();
    }
}
