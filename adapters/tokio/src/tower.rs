//! Layers of `tower` as middleware: around the handlers of a server, and around the calls of a
//! client.
//!
//! [`around_handlers`] converts a layer for [`Server::middleware`](crate::Server::middleware), and
//! [`around_calls`] one for [`Host::call_middleware`](crate::Host::call_middleware):
//!
//! ```
//! use std::time::Duration;
//!
//! use mcp_sansio_tokio::{Call, NoArguments, Server, tower::around_handlers};
//! use tower::ServiceBuilder;
//!
//! let layers = ServiceBuilder::new()
//!     .load_shed()
//!     .concurrency_limit(8)
//!     .timeout(Duration::from_secs(30))
//!     .into_inner();
//! let server = Server::new("reports", "1.0.0")
//!     .middleware(around_handlers(layers))
//!     .tool("report", "The yearly report", |_: Call<NoArguments>| "Nothing to report");
//! # let _ = server;
//! ```
//!
//! A layer is applied once, so that its service has one state for all requests; the service is
//! cloned for each. An error that a layer makes itself becomes one of the handler
//! ([`HandlerError::Internal`]) or of the call ([`ClientError::Middleware`]); those of inner services
//! are not changed. To look at an inner error, a layer downcasts it to [`HandlerFailure`] or
//! [`ClientError`].

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use mcp_sansio::jsonrpc::Json;
use mcp_sansio_handlers::client_middleware::{CallResult, ClientRequest, NextCall};
use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, ResultBody, ServerRequest};
use mcp_sansio_handlers::{ClientError, HandlerError};
use tower_layer::Layer;
use tower_service::Service;

/// An error of any service.
pub type BoxError = Box<dyn Error + Send + Sync>;

type BoxFuture<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// A request to a handler, as services see it.
#[derive(Clone, Debug)]
pub struct HandlerRequest {
    request: ServerRequest,
    next: Next,
}

impl HandlerRequest {
    /// Returns the request.
    #[must_use]
    pub const fn request(&self) -> &ServerRequest {
        &self.request
    }
}

/// The innermost service of the layers around handlers: the rest of the middleware, and the handler.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HandlerService;

impl Service<HandlerRequest> for HandlerService {
    type Response = ResultBody;
    type Error = BoxError;
    type Future = BoxFuture<ResultBody>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HandlerRequest) -> Self::Future {
        Box::pin(async move { request.next.run().await.map_err(HandlerFailure::boxed) })
    }
}

/// The error of a handler, as services see it.
pub struct HandlerFailure {
    // Errors of services are `Sync`. Nothing shares this one.
    error: Mutex<HandlerError>,
    text: String,
}

impl HandlerFailure {
    fn boxed(error: HandlerError) -> BoxError {
        let text = format!("{error:?}");
        Box::new(Self { error: Mutex::new(error), text })
    }

    /// Returns the error.
    #[must_use]
    pub fn into_error(self) -> HandlerError {
        self.error.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for HandlerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for HandlerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for HandlerFailure {}

/// Converts a layer into middleware for the handlers of a server.
pub fn around_handlers<L, S>(
    layer: L,
) -> impl FnOnce(ServerRequest, Next) -> BoxedMiddleware + Clone + Send + Sync + 'static
where
    L: Layer<HandlerService, Service = S>,
    S: Service<HandlerRequest, Response = ResultBody> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    let service = Shared::new(layer.layer(HandlerService));
    move |request, next| {
        let service = service.instance();
        Box::pin(async move {
            call(service, HandlerRequest { request, next }).await.map_err(|error| {
                match error.downcast::<HandlerFailure>() {
                    Ok(failure) => failure.into_error(),
                    Err(error) => HandlerError::Internal(error.to_string()),
                }
            })
        })
    }
}

/// The future of a request in the services around handlers.
pub type BoxedMiddleware = Pin<Box<dyn Future<Output = MiddlewareResult> + Send>>;

/// A call of a client, as services see it. A service may change the request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallRequest {
    /// The request.
    pub request: ClientRequest,
    next: NextCall,
}

/// The innermost service of the layers around calls: the rest of the middleware, and the server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallService;

impl Service<CallRequest> for CallService {
    type Response = Json;
    type Error = BoxError;
    type Future = BoxFuture<Json>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: CallRequest) -> Self::Future {
        Box::pin(async move { Ok(call.next.run(call.request).await?) })
    }
}

/// Converts a layer into middleware for the calls of a host's clients.
pub fn around_calls<L, S>(
    layer: L,
) -> impl FnOnce(ClientRequest, NextCall) -> BoxedCall + Clone + Send + Sync + 'static
where
    L: Layer<CallService, Service = S>,
    S: Service<CallRequest, Response = Json> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    let service = Shared::new(layer.layer(CallService));
    move |request, next| {
        let service = service.instance();
        Box::pin(async move {
            call(service, CallRequest { request, next }).await.map_err(|error| {
                match error.downcast::<ClientError>() {
                    Ok(error) => *error,
                    Err(error) => ClientError::Middleware(error),
                }
            })
        })
    }
}

/// The future of a call in the services around it.
pub type BoxedCall = Pin<Box<dyn Future<Output = CallResult> + Send>>;

/// A service that is cloned for each request. A lock, because few services are `Sync`.
struct Shared<S>(Arc<Mutex<S>>);

impl<S: Clone> Shared<S> {
    fn new(service: S) -> Self {
        Self(Arc::new(Mutex::new(service)))
    }

    fn instance(&self) -> S {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

async fn call<S, R>(mut service: S, request: R) -> Result<S::Response, BoxError>
where
    S: Service<R>,
    S::Error: Into<BoxError>,
{
    poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
    service.call(request).await.map_err(Into::into)
}
