//! Servers that listen on their own port.

use std::net::{SocketAddr, TcpListener};
use std::thread;

use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_std::{BackgroundListener, HttpListener, HttpService, Server};
use tokio::sync::oneshot;

pub(crate) use super::gate::{HandlerGate, gated};
use super::wire::in_time;

/// The listener type under test.
pub(crate) type Listener = HttpListener;

/// A running server.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) service: HttpService,
    serving: Option<BackgroundListener>,
    ended: Option<oneshot::Receiver<()>>,
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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let service = HttpService::new(&server, options).unwrap();
        let listener = tune(HttpListener::try_from(listener).unwrap());
        let serving = BackgroundListener::spawn(listener, service.clone()).unwrap();
        let address = serving.address().unwrap();
        Self { address, service, serving: Some(serving), ended: None }
    }

    /// Starts the shutdown and waits for it on another thread.
    pub(crate) fn stop(&mut self) {
        let Some(serving) = self.serving.take() else { return };
        let (told, tell) = oneshot::channel();
        self.ended = Some(tell);
        thread::spawn(move || {
            serving.stop();
            let _nobody_listens = told.send(());
        });
    }

    /// Waits until the server has ended.
    pub(crate) async fn ended(mut self) {
        in_time(self.ended.take().unwrap()).await.unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}
