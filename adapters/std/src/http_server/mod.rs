//! HTTP as a server with blocking calls: sockets, HTTP/1.1 and threads, and no rule of what requests
//! carry.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::http::ServerOptions;
use mcp_sansio_handlers::{Remote, Server};

mod body;
mod caller;
mod connection;
mod exchange;
mod guests;
mod keeper;
mod listener;
mod request;
mod response;
mod running;
mod site;
mod socket;

pub use listener::{HttpListener, HttpServing, serve_http};

use crate::{Error, Wait, now, seed};
use site::Site;

/// A server on HTTP. All clones are one server. [`HttpListener`] brings it clients.
///
/// A plain handler runs on the thread of its client's connection. An `async` one that has to wait
/// has a thread of its own until it is done; it is polled there inside of a
/// [`block_on`](crate::block_on).
#[derive(Clone, Debug)]
pub struct HttpService {
    site: Arc<Site>,
}

impl HttpService {
    /// Puts a server on HTTP. Its deadlines are kept by a thread, which ends with the last clone.
    ///
    /// # Errors
    ///
    /// The server offers something that it cannot; the operating system has no entropy or no thread.
    pub fn new(server: &Server, options: ServerOptions) -> Result<Self, Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(std::io::Error::from)?;
        let server = server.http(options, secret, seed())?;
        let site = Arc::new(Site::new(server));
        keeper::spawn(Arc::downgrade(&site))?;
        Ok(Self { site })
    }

    /// A way to all clients from outside of the handlers.
    #[must_use]
    pub fn remote(&self) -> Remote {
        self.site.lock().server.remote()
    }

    /// Takes no new request from here on, by whichever clone, and waits until the responses under way
    /// are complete. Streams that stand open end.
    ///
    /// In a handler it would wait for itself.
    pub fn close(&self) {
        self.refuse_more();
        self.drained().wait();
    }

    fn refuse_more(&self) {
        self.site.change(|locked| locked.server.close(now()));
    }

    /// Done when it is closed and no response is under way.
    async fn drained(&self) {
        poll_fn(|cx| self.site.lock().poll_drained(cx)).await;
    }
}

/// How long a connection waits for its client.
#[derive(Clone, Copy, Debug)]
struct Times {
    head: Duration,
    stall: Duration,
}
