//! An HTTP server on a local port.

use std::net::SocketAddr;
use std::time::Duration;

use mcp_sansio::http::{HttpServerOptions, ServerTimeouts};
use mcp_sansio_tokio::Server;
use mcp_sansio_tokio::{HttpListener, HttpService};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::stage::Outcome;

pub(crate) struct HttpServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl HttpServer {
    /// Serves clients of all revisions on a free port. Clients that lose a stream reconnect after
    /// `retry`.
    pub(crate) async fn open(server: &Server, retry: Duration) -> Outcome<Self> {
        Self::open_with(|_| Ok(server.clone()), retry).await
    }

    /// Like [`open`](Self::open), for a server that needs its own URL.
    pub(crate) async fn open_with(
        server: impl FnOnce(&str) -> Outcome<Server>,
        retry: Duration,
    ) -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let server = server(&format!("http://{address}/mcp"))?;
        let mut timeouts = ServerTimeouts::default();
        timeouts.retry = retry;
        let options = HttpServerOptions::new().timeouts(timeouts).legacy_sse("/sse", "/messages");
        let service = HttpService::new(&server, options)?;
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            // Dropping the sender also stops the server.
            let stopped = async { drop(stopped.await) };
            HttpListener::new(listener)
                .linger(Duration::from_secs(1))
                .serve(service, stopped)
                .await;
        });
        Ok(Self { address, stop, serving })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn close(self) -> Outcome {
        drop(self.stop);
        Ok(self.serving.await?)
    }
}
