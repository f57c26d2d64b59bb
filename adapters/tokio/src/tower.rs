//! Layers of `tower` as middleware: around the handlers of a server, and around the calls of a
//! client.
//!
//! [`around`] converts a layer for [`Server::middleware`](crate::Server::middleware) or
//! [`Host::call_middleware`](crate::Host::call_middleware):
//!
//! ```
//! use std::time::Duration;
//!
//! use mcp_sansio_tokio::{Call, NoArguments, Server, tower::around};
//! use tower::ServiceBuilder;
//!
//! let layers = ServiceBuilder::new()
//!     .load_shed()
//!     .concurrency_limit(8)
//!     .timeout(Duration::from_secs(30))
//!     .into_inner();
//! let server = Server::new("reports", "1.0.0")
//!     .middleware(around(layers))
//!     .tool("report", "The yearly report", |_: Call<NoArguments>| "Nothing to report");
//! # let _ = server;
//! ```
//!
//! A layer is applied once, so that its service has one state for all requests; the service is
//! cloned for each. An error that a layer makes itself becomes one of the handler
//! ([`HandlerError::Internal`]) or of the call ([`ClientError::Middleware`]); those of inner
//! services are not changed. To look at an inner error, a layer downcasts it to [`HandlerFailure`]
//! or [`ClientError`].
//!
//! Middleware and layers of `tower` alternate as they are registered.

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use mcp_sansio_handlers::middleware::{Around, AroundSend, MiddlewareResult, Next};
use mcp_sansio_handlers::{ClientError, HandlerError, ThreadSafe};
use tower_layer::Layer;
use tower_service::Service;

/// An error of any service.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A request to a handler or a call of a client, as services see it. A service may change it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Request<A: Around = ThreadSafe> {
    /// The request: a [`ServerRequest`](crate::middleware::ServerRequest) or a
    /// [`ClientRequest`](crate::middleware::ClientRequest).
    pub request: A::Request,
    next: Next<A>,
}

mcp_sansio::partial_debug! {
    impl<A: Around<Request: fmt::Debug>> Debug for Request<A> { request, .. }
}

/// The innermost service: the rest of the middleware, and the handler or the call.
#[derive(Debug)]
pub struct Inner<A>(PhantomData<fn() -> A>);

impl<A> Clone for Inner<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Inner<A> {}

impl<A: AroundSend<Error: ServiceError, Body: Send>> Service<Request<A>> for Inner<A> {
    type Response = A::Body;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<A::Body, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, Request { request, next }: Request<A>) -> Self::Future {
        Box::pin(async move { next.run(request).await.map_err(ServiceError::into_boxed) })
    }
}

/// An error of a handler or of a call, as an error of services.
pub trait ServiceError: sealed::Sealed {
    /// Converts it for services.
    fn into_boxed(self) -> BoxError;

    /// Converts an error of a service: one of an inner service is the one that it was.
    fn from_boxed(error: BoxError) -> Self;
}

impl ServiceError for HandlerError {
    fn into_boxed(self) -> BoxError {
        let text = format!("{self:?}");
        Box::new(HandlerFailure { error: Mutex::new(self), text })
    }

    fn from_boxed(error: BoxError) -> Self {
        match error.downcast::<HandlerFailure>() {
            Ok(failure) => failure.into_error(),
            Err(error) => Self::Internal(error.to_string()),
        }
    }
}

impl ServiceError for ClientError {
    fn into_boxed(self) -> BoxError {
        Box::new(self)
    }

    fn from_boxed(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self::Middleware(error),
        }
    }
}

mod sealed {
    /// Errors of handlers and of calls.
    #[allow(unnameable_types, reason = "sealed: other crates cannot implement it")]
    pub trait Sealed {}
    impl Sealed for super::HandlerError {}
    impl Sealed for super::ClientError {}
}

/// The error of a handler, as services see it.
pub struct HandlerFailure {
    // Errors of services are `Sync`. Nothing shares this one.
    error: Mutex<HandlerError>,
    text: String,
}

impl HandlerFailure {
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

/// Converts a layer into middleware for the handlers of a server, or for the calls of a host's
/// clients.
pub fn around<A, L, S>(
    layer: L,
) -> impl FnOnce(A::Request, Next<A>) -> BoxedMiddleware<A> + Clone + Send + Sync + 'static
where
    A: AroundSend<Error: ServiceError>,
    L: Layer<Inner<A>, Service = S>,
    S: Service<Request<A>, Response = A::Body> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    // A lock, because few services are `Sync`.
    let service = Arc::new(Mutex::new(layer.layer(Inner(PhantomData))));
    move |request, next| {
        let mut service = service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            let call = async {
                poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
                service.call(Request { request, next }).await.map_err(Into::into)
            };
            call.await.map_err(A::Error::from_boxed)
        })
    }
}

/// The future of a request in the services around it.
pub type BoxedMiddleware<A = ThreadSafe> =
    Pin<Box<dyn Future<Output = MiddlewareResult<A>> + Send>>;
