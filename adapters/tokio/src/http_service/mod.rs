use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::Body;
use mcp_sansio::http::{RemoteAddress, ServerOptions};
use mcp_sansio_async::http_server;
use mcp_sansio_handlers::{Remote, Server};

use crate::{Error, seed};

mod connection;
mod listener;
mod preface;
#[cfg(test)]
mod tests;
mod turn;

pub use listener::{HttpListener, serve_http};
pub use mcp_sansio_async::http_server::{EventArchive, ServedBody, Unread};

use crate::runtime::TokioRuntime;
use mcp_sansio_async::Runtime as _;

/// A server on HTTP, as a [`tower_service::Service`]: for axum, for hyper, for anything that takes
/// such a service. For those who have no framework there is [`serve_http`].
///
/// All clones are one server. Who sends a request, a [protected](Server::protect) server finds out
/// from its token; otherwise it is taken from a [`Principal`](mcp_sansio::Principal) among the
/// request's extensions, where a layer before this one has put it. Route the
/// [paths of its metadata](mcp_sansio::auth::ProtectedResource::metadata_paths) to a protected server
/// as well.
///
/// ```no_run
/// # async fn run() -> Result<(), mcp_sansio_tokio::Error> {
/// use mcp_sansio_tokio::{Call, HttpService, NoArguments, Server};
///
/// let server = Server::new("clock", "1.0.0")
///     .tool("now", "The time", async |_: Call<NoArguments>| "about noon");
/// let service = HttpService::new(&server, mcp_sansio::http::ServerOptions::new().any_path())?;
/// // axum::Router::new().route_service("/mcp", service)
/// # let _ = service; Ok(()) }
/// ```
///
/// With tokens:
///
/// ```no_run
/// use mcp_sansio_tokio::{
///     HttpService, Principal, ProtectedResource, Server, ServerOptions, TokenCheck, TokenRefusal,
///     VerifiedToken, unix_time,
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
/// let server = Server::new("files", "1.0.0").protect(resource, check, unix_time);
/// let service = HttpService::new(&server, ServerOptions::new().any_path())?;
/// // Route the service at `/mcp` and at all of `paths`.
/// # let _ = (service, paths); Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct HttpService(http_server::HttpService);

impl HttpService {
    /// Puts a server on HTTP. Its deadlines are kept by a task of the runtime that this is called
    /// in, which ends with the last clone.
    ///
    /// # Errors
    ///
    /// The server offers something that it cannot; the operating system has no entropy.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(server: &Server, options: ServerOptions) -> Result<Self, Error> {
        let runtime = TokioRuntime::current();
        Ok(Self(http_server::HttpService::new(server, options, secret()?, seed(), runtime)?))
    }

    /// Puts a server on HTTP whose events are kept in an archive of the caller's as well, for clients
    /// that come back later than memory lasts. As for its deadlines there is a task for it.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn with_archive(
        server: &Server,
        options: ServerOptions,
        archive: impl EventArchive,
    ) -> Result<Self, Error> {
        let (secret, runtime) = (secret()?, TokioRuntime::current());
        let service = http_server::HttpService::with_archive(
            server,
            options,
            secret,
            seed(),
            runtime,
            archive,
        );
        Ok(Self(service?))
    }

    /// The same server for the requests of one connection: they come from `address`, unless a
    /// [`RemoteAddress`] among their extensions names another client, whom a proxy before this
    /// server vouches for. [`HttpListener`] does so for its connections; a framework does not, and
    /// without either a request without a [`Principal`](mcp_sansio::Principal) counts against
    /// nobody's share: see [`ServerLimits`](mcp_sansio::http::ServerLimits).
    #[must_use]
    pub fn with_remote_address(&self, address: impl Into<RemoteAddress>) -> Self {
        Self(self.0.with_remote_address(address))
    }

    /// A way to all clients from outside of the handlers.
    #[must_use]
    pub fn remote(&self) -> Remote {
        self.0.remote()
    }

    /// Takes no new request from here on, by whichever clone, and waits until the responses under
    /// way are complete. Streams that stand open end.
    pub async fn close(&self) {
        self.0.close().await;
    }

    /// Serves one request.
    ///
    /// To drop the future, or the body of the response before its end, is to tell that the client
    /// has gone.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time enabled.
    pub fn serve<B: Body>(
        &self,
        request: http::Request<B>,
    ) -> impl Future<Output = http::Response<ServedBody>> + use<B> {
        self.0.serve(request)
    }

    /// Serves one request of HTTP/2 in the task of its stream.
    fn serve_stream<B: Body>(
        &self,
        streams: &http_server::Http2Streams,
        request: http::Request<B>,
    ) -> impl Future<Output = http::Response<http_server::SendBody>> + use<B> {
        streams.serve(&self.0, request)
    }
}

/// What nobody outside can guess: ids of sessions come from it.
fn secret() -> Result<[u8; 32], Error> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(std::io::Error::from)?;
    Ok(secret)
}

impl<B> tower_service::Service<http::Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = http::Response<ServedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let served = self.serve(request);
        Box::pin(async move { Ok(served.await) })
    }
}
