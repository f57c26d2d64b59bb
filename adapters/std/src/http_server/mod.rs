//! HTTP as a server with blocking calls: sockets, HTTP/1.1 and threads, and no rule of what requests
//! carry.

use std::io;
use std::time::Duration;

use mcp_sansio::http::ServerOptions;
use mcp_sansio_async::http_server;
use mcp_sansio_handlers::{Server, ServerHandle};

mod body;
mod connection;
mod listener;
mod request;
mod response;
mod socket;

pub use listener::{BackgroundListener, HttpListener, serve_http};

use crate::runtime::ThreadRuntime;
use crate::{Error, Wait, seed};

/// Tasks of a server at once, each on a thread. 1,024: as many threads as systems give a process without
/// asking. The handler that would be one more is answered for with an internal error.
const TASKS_MAX: usize = 1024;

/// A server on HTTP. All clones are one server. [`HttpListener`] brings it clients.
///
/// A plain handler runs on the thread of its client's connection. An `async` one that has to wait
/// has a thread of its own until it is done; it is polled there inside of a
/// [`block_on`](crate::block_on).
#[derive(Clone, Debug)]
pub struct HttpService(http_server::HttpService<ThreadRuntime>);

impl HttpService {
    /// Puts a server on HTTP. Its deadlines are kept by a thread, which ends with the last clone.
    ///
    /// # Errors
    ///
    /// The server offers something that it cannot; the operating system has no entropy or no thread.
    pub fn new(server: &Server, options: ServerOptions) -> Result<Self, Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(io::Error::from)?;
        let runtime = ThreadRuntime::new("mcp-handler", TASKS_MAX);
        let threads = runtime.clone();
        let service =
            http_server::HttpService::with_runtime(server, options, secret, seed(), runtime)?;
        if threads.has_refused() {
            return Err(io::Error::other("there is no thread that could keep the time").into());
        }
        Ok(Self(service))
    }

    /// A way to all clients from outside of the handlers.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.0.handle()
    }

    /// Takes no new request from here on, by whichever clone, and waits until the responses under way
    /// are complete. Streams that stand open end.
    ///
    /// In a handler it would wait for itself.
    pub fn close(&self) {
        self.0.close().wait();
    }
}

/// How long a connection waits for its client.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    head: Duration,
    stall: Duration,
}
