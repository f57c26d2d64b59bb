//! A blocking HTTP server: sockets, HTTP/1.1 and threads, independent of the protocol.

use std::io;
use std::time::Duration;

use mcp_sansio::http::{HttpServerOptions, SharedOptions};
use mcp_sansio_async::http_server::{self, SharedStore};
use mcp_sansio_handlers::{Server, ServerHandle};

mod body;
mod connection;
mod listener;
mod request;
mod response;
mod socket;

#[cfg(unix)]
pub use listener::serve_http_unix;
pub use listener::{BackgroundListener, HttpListener, serve_http};

use crate::runtime::ThreadRuntime;
use crate::{Error, Wait, seed};

/// Concurrent handlers of a server. The other tasks run its timer and its store.
const HANDLERS_MAX: usize = 1000;

/// Concurrent tasks of a server, each on a thread. 1,024: a number of threads that systems grant a
/// process by default. A handler beyond the limit fails with an internal error.
const TASKS_MAX: usize = 1024;

/// A server on HTTP. All clones share one server. [`HttpListener`] accepts its clients.
///
/// A synchronous handler runs on the thread of its client's connection. An `async` handler that has
/// to wait gets its own thread, where it is polled within a [`block_on`](crate::block_on).
#[derive(Clone, Debug)]
pub struct HttpService(http_server::HttpService<ThreadRuntime>);

impl HttpService {
    /// Creates a service for a server. A thread handles its deadlines; it ends with the last clone.
    ///
    /// # Errors
    ///
    /// The server's catalog is invalid; the operating system has no entropy or is out of threads.
    pub fn new(server: &Server, options: HttpServerOptions) -> Result<Self, Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(io::Error::from)?;
        let runtime = ThreadRuntime::new("mcp-handler", TASKS_MAX);
        let threads = runtime.clone();
        let mut limits = options.limits_ref().clone();
        limits.handlers_max = limits.handlers_max.min(HANDLERS_MAX);
        let options = options.limits(limits);
        let service =
            http_server::HttpService::with_runtime(server, options, secret, seed(), runtime)?;
        if threads.has_refused() {
            return Err(io::Error::other(
                "cannot start the timer thread: the system is out of threads",
            )
            .into());
        }
        Ok(Self(service))
    }

    /// Creates a service that shares its sessions and streams with other nodes through a store: see
    /// [`HttpServerOptions::shared`]. A thread runs the store.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_shared_store(
        server: &Server,
        options: HttpServerOptions,
        sharing: SharedOptions,
        store: impl SharedStore,
    ) -> Result<Self, Error> {
        let service = Self::new(server, options.shared(sharing))?;
        service.0.run_store(store);
        Ok(service)
    }

    /// Answers health checks at `path`: see [`HttpService::health`](http_server::HttpService::health).
    #[must_use]
    pub fn health(self, path: impl Into<String>) -> Self {
        Self(self.0.health(path))
    }

    /// Whether [health checks](Self::health) answer 200.
    pub fn set_ready(&self, ready: bool) {
        self.0.set_ready(ready);
    }

    /// Returns a handle to all clients, for use outside of handlers.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.0.handle()
    }

    /// Accepts no more requests, through any clone, and waits until the responses in progress are
    /// complete. Open event streams end.
    ///
    /// Calling it in a handler would deadlock.
    pub fn close(&self) {
        self.0.close().wait();
    }
}

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    head: Duration,
    stall: Duration,
}
