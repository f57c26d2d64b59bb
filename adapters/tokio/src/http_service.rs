#[cfg(unix)]
use std::path::Path;

use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_async::http_server;
#[cfg(unix)]
use mcp_sansio_async::http_server::UnixSocket;
use mcp_sansio_handlers::Server;
use tokio::net::TcpListener;

use crate::Error;
use crate::runtime::TokioRuntime;

/// Serves a server over HTTP, as a [`tower_service::Service`]: for axum, hyper, and other software
/// that takes such a service. Applications without a web framework use [`serve_http`].
///
/// All clones share one server. A [protected](Server::protect) server identifies the sender of a
/// request by its token; otherwise the sender is the [`Principal`](mcp_sansio::Principal) that an
/// earlier layer has put into the request's extensions. Route the [paths of its
/// metadata](mcp_sansio_oauth::protected_resource::ProtectedResource::metadata_paths) to a
/// protected server as well.
///
/// ```no_run
/// # async fn run() -> Result<(), mcp_sansio_tokio::Error> {
/// use mcp_sansio_tokio::{Call, HttpService, NoArguments, Server};
///
/// let server = Server::new("clock", "1.0.0")
///     .tool("now", "The time", async |_: Call<NoArguments>| "about noon");
/// let service = HttpService::new(&server, mcp_sansio::http::HttpServerOptions::new().any_path())?;
/// // axum::Router::new().route_service("/mcp", service)
/// # let _ = service; Ok(()) }
/// ```
///
/// With tokens:
///
/// ```no_run
/// use mcp_sansio_tokio::{
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
pub type HttpService = http_server::HttpService<TokioRuntime>;

/// Accepts connections and serves HTTP/1.1 and HTTP/2 on them, for applications without a web
/// framework.
pub type HttpListener = http_server::HttpListener<TokioRuntime>;

/// Serves HTTP on a listener, at `/mcp`, for clients on this computer, until the process ends.
///
/// For other settings, see [`HttpListener`].
///
/// # Errors
///
/// The server's catalog is invalid; the operating system has no entropy.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
pub async fn serve_http(server: Server, listener: TcpListener) -> Result<(), Error> {
    let service = HttpService::new(&server, HttpServerOptions::new())?;
    HttpListener::new(listener).serve(service, std::future::pending()).await;
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
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
#[cfg(unix)]
pub async fn serve_http_unix(server: Server, path: impl AsRef<Path>) -> Result<(), Error> {
    let service = HttpService::new(&server, HttpServerOptions::new())?;
    let listener = HttpListener::try_from(UnixSocket::bind(path)?)?;
    listener.serve(service, std::future::pending()).await;
    Ok(())
}
