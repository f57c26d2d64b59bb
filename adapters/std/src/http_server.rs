//! The server on HTTP: the types of `mcp_sansio_async`, and functions that block.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpListener};
#[cfg(unix)]
use std::path::Path;

use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_async::async_io::network::Listener;
use mcp_sansio_async::http_server;
#[cfg(unix)]
use mcp_sansio_async::http_server::UnixSocket;
use mcp_sansio_handlers::Server;

use crate::background_driver::Worker;
use crate::runtime::ThreadRuntime;
use crate::{Error, block_on};

/// A server on HTTP. All clones share one server. [`HttpListener`] accepts its clients.
///
/// A thread handles its deadlines, and another one runs its store. A synchronous handler runs on the
/// thread of its client's connection. An `async` handler that has to wait gets its own thread, where
/// it is polled within a [`block_on`](crate::block_on()); there are at most 1,000.
pub type HttpService = http_server::HttpService<ThreadRuntime>;

/// Accepts connections and serves HTTP/1.1 on them, each on its own thread. Create it from a
/// listener of the standard library or a `UnixSocket` with `try_from`, and run it with
/// [`block_on`](crate::block_on()) or in a [`BackgroundListener`].
///
/// A running synchronous handler is not notified of the disconnect of its client. After
/// [`linger`](http_server::HttpListener::linger), it is not awaited any longer.
///
/// ```no_run
/// use std::future::pending;
/// use std::net::TcpListener;
/// use std::time::Duration;
///
/// use mcp_sansio_std::{Error, HttpListener, HttpService, block_on};
///
/// # fn run(service: HttpService) -> Result<(), Error> {
/// let listener = HttpListener::try_from(TcpListener::bind("127.0.0.1:8000")?)?;
/// block_on(listener.head_timeout(Duration::from_secs(5)).serve(service, pending()));
/// # Ok(())
/// # }
/// ```
pub type HttpListener = http_server::HttpListener<ThreadRuntime>;

/// Serves HTTP on a listener, at `/mcp`, for clients on this computer, until the process ends.
///
/// For other settings, see [`HttpListener`].
///
/// ```no_run
/// use mcp_sansio_std::{Server, serve_http};
///
/// # fn main() -> Result<(), mcp_sansio_std::Error> {
/// let listener = std::net::TcpListener::bind("127.0.0.1:8000")?;
/// serve_http(Server::new("weather", "1.0.0"), listener)
/// # }
/// ```
///
/// # Errors
///
/// The server's catalog is invalid; the operating system has no entropy, or is out of threads or
/// descriptors.
#[allow(clippy::needless_pass_by_value, reason = "same signature as the other serve functions")]
pub fn serve_http(server: Server, listener: TcpListener) -> Result<(), Error> {
    serve_on(&server, listener.try_into()?)
}

/// Serves HTTP on a new Unix-domain socket at `path`, for processes of the same user, until the
/// process ends. Clients use the URL `http://localhost/mcp`; `uid:1000`, for example, is the
/// [`Principal`](crate::Principal) of their requests.
///
/// For other settings, create an [`HttpListener`] from a [`UnixSocket`].
///
/// # Errors
///
/// The socket cannot be [bound](UnixSocket::bind), for example because another server listens on
/// it; the server's catalog is invalid; the operating system has no entropy, or is out of threads
/// or descriptors.
#[cfg(unix)]
#[allow(clippy::needless_pass_by_value, reason = "same signature as the other serve functions")]
pub fn serve_http_unix(server: Server, path: impl AsRef<Path>) -> Result<(), Error> {
    serve_on(&server, UnixSocket::bind(path)?.try_into()?)
}

fn serve_on(server: &Server, listener: HttpListener) -> Result<(), Error> {
    let service = HttpService::new(server, HttpServerOptions::new())?;
    block_on(listener.serve(service, pending()));
    Ok(())
}

/// A listener that is served on its own thread.
///
/// Dropping it stops it like [`stop`](Self::stop).
#[derive(Debug)]
pub struct BackgroundListener {
    worker: Worker<Infallible>,
    address: Option<SocketAddr>,
}

impl BackgroundListener {
    /// Serves `service` to the clients of `listener`.
    ///
    /// # Errors
    ///
    /// The system is out of threads.
    pub fn spawn(listener: HttpListener, service: HttpService) -> io::Result<Self> {
        let address = match listener.socket() {
            Listener::Tcp(listener) => Some(listener.get_ref().local_addr()?),
            _ => None,
        };
        let worker = Worker::spawn("mcp-listener", move |stop| {
            let stopped = stop.until_stopped(pending::<()>());
            block_on(listener.serve(service, async {
                stopped.await;
            }));
            Ok(())
        });
        Ok(Self { worker: worker?, address })
    }

    /// Returns the local address; `None` for a Unix-domain socket.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Accepts no more connections, closes the service for all its clones, and waits until the
    /// responses in progress are complete or [their time](http_server::HttpListener::linger) is up;
    /// then they are aborted. A synchronous handler that is still running is not awaited any longer
    /// than that.
    pub fn stop(self) {
        let Ok(()) = self.worker.stop();
    }
}
