use std::future::pending;
#[cfg(unix)]
use std::path::Path;
use std::{io, net};

use async_io::Async;
use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_async::http_server;
#[cfg(unix)]
use mcp_sansio_async::http_server::UnixSocket;
use mcp_sansio_handlers::Server;

use crate::Error;
use crate::runtime::AsyncRuntime;

/// Serves a server over HTTP, as a [tower `Service`](https://docs.rs/tower-service) or through
/// [`serve`](http_server::HttpService::serve). Applications without a web framework use
/// [`serve_http`].
///
/// All clones share one server. A [protected](Server::protect) server identifies the sender of a
/// request by its token; otherwise the sender is the [`Principal`](mcp_sansio::Principal) that an
/// earlier layer has put into the request's extensions. Route the [paths of its
/// metadata](mcp_sansio_oauth::protected_resource::ProtectedResource::metadata_paths) to a
/// protected server as well.
///
/// ```no_run
/// # async fn run() -> Result<(), mcp_sansio_async_std::Error> {
/// use mcp_sansio_async_std::{Call, HttpService, NoArguments, Server};
///
/// let server = Server::new("clock", "1.0.0")
///     .tool("now", "The time", async |_: Call<NoArguments>| "about noon");
/// let service = HttpService::new(&server, mcp_sansio::http::HttpServerOptions::new().any_path())?;
/// // For each request: service.serve(request).await
/// # let _ = service; Ok(()) }
/// ```
///
/// With tokens:
///
/// ```no_run
/// use mcp_sansio_async_std::{
///     HttpService, Principal, ProtectedResource, Server, HttpServerOptions, TokenCheck, TokenRefusal,
///     VerifiedToken,
/// };
/// # struct Claims { iss: &'static str, sub: &'static str, aud: String, exp: u64 }
/// # async fn verify(_: &TokenCheck) -> Option<Claims> { None }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let resource =
///     ProtectedResource::new("https://mcp.example.com/mcp", ["https://auth.example.com"])?;
/// let paths = resource.metadata_paths();
/// let check = async |check: TokenCheck| {
///     let claims = verify(&check).await.ok_or(TokenRefusal::Invalid)?;
///     let principal = Principal::new(format!("{}|{}", claims.iss, claims.sub));
///     Ok(VerifiedToken::new(principal).audiences([claims.aud]).expires_at(claims.exp))
/// };
/// let server = Server::new("files", "1.0.0").protect(resource, check);
/// let service = HttpService::new(&server, HttpServerOptions::new().any_path())?;
/// // Route the service at `/mcp` and at all of `paths`.
/// # let _ = (service, paths); Ok(()) }
/// ```
pub type HttpService = http_server::HttpService<AsyncRuntime>;

/// Accepts connections and serves HTTP/1.1 on them, for applications without a web framework.
/// Create it from a listener of smol with `new`, or from one of the standard library with
/// `try_from`.
pub type HttpListener = http_server::HttpListener<AsyncRuntime>;

/// Serves HTTP on a listener, at `/mcp`, for clients on this computer, until the process ends.
///
/// The listener is one of the standard library, of smol or of async-std (if that feature is
/// enabled), or an [`HttpListener`] with other settings.
///
/// ```no_run
/// use mcp_sansio_async_std::{Server, serve_http};
///
/// # async fn run() -> Result<(), mcp_sansio_async_std::Error> {
/// let listener = std::net::TcpListener::bind("127.0.0.1:8000")?;
/// serve_http(Server::new("weather", "1.0.0"), listener).await
/// # }
/// ```
///
/// # Errors
///
/// The server's catalog is invalid; the operating system has no entropy, or cannot register the
/// listener.
pub async fn serve_http(server: Server, listener: impl IntoHttpListener) -> Result<(), Error> {
    let listener = listener.into_http_listener()?;
    let service = HttpService::new(&server, HttpServerOptions::new())?;
    listener.serve(service, pending()).await;
    Ok(())
}

/// Serves HTTP on a new Unix-domain socket at `path`, for processes of the same user, until the
/// process ends. Clients use the URL `http://localhost/mcp`; `uid:1000`, for example, is the
/// [`Principal`](mcp_sansio::Principal) of their requests.
///
/// For other settings, create an [`HttpListener`] from a [`UnixSocket`].
///
/// # Errors
///
/// The socket cannot be [bound](UnixSocket::bind), for example because another server
/// listens on it; the server's catalog is invalid; the operating system has no entropy.
#[cfg(unix)]
pub async fn serve_http_unix(server: Server, path: impl AsRef<Path>) -> Result<(), Error> {
    serve_http(server, UnixSocket::bind(path)?).await
}

/// A listener for [`serve_http`].
pub trait IntoHttpListener {
    /// Converts it to an HTTP listener.
    ///
    /// # Errors
    ///
    /// The system is out of resources.
    fn into_http_listener(self) -> io::Result<HttpListener>;
}

impl IntoHttpListener for HttpListener {
    fn into_http_listener(self) -> io::Result<HttpListener> {
        Ok(self)
    }
}

impl IntoHttpListener for Async<net::TcpListener> {
    fn into_http_listener(self) -> io::Result<HttpListener> {
        Ok(HttpListener::new(self))
    }
}

#[cfg(unix)]
impl IntoHttpListener for UnixSocket {
    fn into_http_listener(self) -> io::Result<HttpListener> {
        self.try_into()
    }
}

impl IntoHttpListener for net::TcpListener {
    fn into_http_listener(self) -> io::Result<HttpListener> {
        self.try_into()
    }
}
