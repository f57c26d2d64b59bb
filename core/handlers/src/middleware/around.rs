use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;

use mcp_sansio::Instant;

use super::access_log::{AccessOutcome, AccessRecord};
use super::rate_limit::CallerKey;
use crate::threading::{Local, ThreadSafe};

/// What middleware runs around: the handlers of a server, [`ThreadSafe`] or [`Local`], or the calls
/// of a client, [`Calls`](super::Calls).
pub trait Around: sealed::Sealed + Sized + 'static {
    /// The request, owned by the step that it is in.
    type Request: Clone;
    /// The result of a request that succeeded.
    type Body;
    /// Why a request failed.
    type Error;
    /// A stored middleware.
    type Layer: Clone + Deref<Target: Fn(Self::Request, Next<Self>) -> Self::Task>;
    /// The future of a stored middleware.
    type Task;
    /// What the innermost step needs in addition to the request.
    type Target: Clone;
    /// The future of a step.
    type Running: Future<Output = MiddlewareResult<Self>>;
    /// The result of a stored middleware.
    type Output;

    /// Runs a step.
    #[doc(hidden)]
    fn run(next: &Next<Self>, request: Self::Request) -> Self::Running;

    /// Whether a request calls a tool.
    #[doc(hidden)]
    fn is_tool(request: &Self::Request) -> bool;

    /// Converts the result of a middleware.
    #[doc(hidden)]
    fn output(result: MiddlewareResult<Self>, is_tool: bool) -> Self::Output;

    /// Returns the time of the connection.
    #[doc(hidden)]
    fn now(request: &Self::Request) -> Instant;

    /// Waits, by the clock of the connection.
    #[doc(hidden)]
    fn sleep(request: &Self::Request, pause: Duration) -> impl Future<Output = ()>;

    /// Returns who shares a limit of the rate with the sender of a request.
    #[doc(hidden)]
    fn caller(request: &Self::Request) -> CallerKey;

    /// Returns the error of a request beyond a limit of the rate.
    #[doc(hidden)]
    fn rate_exceeded(retry_after: Duration) -> Self::Error;

    /// Calls `write` with the record of a request, as if it had ended at once.
    #[doc(hidden)]
    fn record(request: &Self::Request, write: impl FnOnce(AccessRecord<'_>));

    /// Returns how a request ended.
    #[doc(hidden)]
    fn outcome(result: &MiddlewareResult<Self>) -> AccessOutcome;
}

/// Middleware whose futures move between threads.
pub trait AroundSend:
    Around<
        Request: Send,
        Target: Send + Sync,
        Running: Send,
        Layer = Arc<
            dyn Fn(<Self as Around>::Request, Next<Self>) -> <Self as Around>::Task + Send + Sync,
        >,
        Task = Pin<Box<dyn Future<Output = <Self as Around>::Output> + Send>>,
    >
{
}

impl AroundSend for ThreadSafe {}

/// The result of a step, as middleware sees it and returns it.
///
/// Around a handler, errors have the same effect as those of the handler:
/// [`HandlerError::Failed`](crate::HandlerError::Failed) of a tool becomes a result that the model
/// sees. [`HandlerError::InputRequired`](crate::HandlerError::InputRequired) is not a failure.
///
/// Around a call, the result is JSON, which the caller decodes: a changed result that does not
/// match the type of the call is a `ClientError::InvalidResult`.
pub type MiddlewareResult<A = ThreadSafe> = Result<<A as Around>::Body, <A as Around>::Error>;

/// The next step of a request: the next middleware, or what all of it is around.
pub struct Next<A: Around = ThreadSafe> {
    pub(crate) target: A::Target,
    pub(crate) index: usize,
}

impl<A: Around> Next<A> {
    pub(crate) const fn new(target: A::Target) -> Self {
        Self { target, index: 0 }
    }

    /// Returns the step after the middleware that this one calls.
    pub(crate) fn after(&self) -> Self {
        Self { target: self.target.clone(), index: self.index + 1 }
    }

    /// Runs the rest of the middleware, and the handler or the call. To try again, call it again,
    /// with a clone of the request: the handler then starts anew, or the server receives another
    /// call.
    ///
    /// Dropping the future cancels the rest: an `async` handler is dropped, a
    /// [`blocking`](crate::blocking()) one sees [`is_cancelled`](crate::Context::is_cancelled), and
    /// a call is cancelled at the server. A panic of a handler is an internal error.
    ///
    /// # Errors
    ///
    /// Those of the handler or of the call.
    pub async fn run(&self, request: A::Request) -> MiddlewareResult<A> {
        A::run(self, request).await
    }
}

impl<A: Around> Clone for Next<A> {
    fn clone(&self) -> Self {
        Self { target: self.target.clone(), index: self.index }
    }
}

mcp_sansio::partial_debug! { impl<A: Around> Debug for Next<A> { index, .. } }

/// A function or a type that can be registered with
/// [`Server::middleware`](crate::Server::middleware) or
/// [`Host::call_middleware`](crate::Host::call_middleware): an `async` function or closure that
/// takes a request and a [`Next`] and returns a [`MiddlewareResult`], or one of the types in this
/// [module](super).
///
/// `M` tells them apart; the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "this cannot be registered as middleware here",
    label = "not middleware: wrong parameters or wrong result",
    note = "middleware of a server is an `async fn(ServerRequest, Next) -> MiddlewareResult`; for `Server::local` it takes `Next<Local>`",
    note = "middleware of a host is an `async fn(ClientRequest, Next<Calls>) -> MiddlewareResult<Calls>`",
    note = "values that it captures are `Send`, `Sync` and `Clone`; `Server::local` has no such bounds"
)]
pub trait Middleware<A: Around, M> {
    /// Converts it into the stored form.
    fn into_layer(self) -> A::Layer;
}

// Cloned for each request, like handlers, so that an `async move` closure may capture values.
impl<A, F, R> Middleware<A, ()> for F
where
    A: AroundSend,
    F: FnOnce(A::Request, Next<A>) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = MiddlewareResult<A>> + Send + 'static,
{
    fn into_layer(self) -> A::Layer {
        Arc::new(move |request, next| {
            let is_tool = A::is_tool(&request);
            let result = self.clone()(request, next);
            Box::pin(async move { A::output(result.await, is_tool) })
        })
    }
}

impl<F> Middleware<Local, ()> for F
where
    F: AsyncFn(super::ServerRequest, Next<Local>) -> MiddlewareResult<Local> + 'static,
{
    fn into_layer(self) -> <Local as Around>::Layer {
        let function = Rc::new(self);
        Rc::new(move |request, next| {
            let function = Rc::clone(&function);
            Box::pin(async move {
                let is_tool = Local::is_tool(&request);
                Local::output(function(request, next).await, is_tool)
            })
        })
    }
}

/// Implements [`Middleware`] for types with an asynchronous method `around<A: Around>(&self,
/// A::Request, Next<A>) -> MiddlewareResult<A>`. Requests share the value.
macro_rules! layer {
    ($around:ty: $($layer:ty),+) => { $(
        impl $crate::middleware::around::Middleware<$around, Self> for $layer {
            // Inline, so that a layer is compiled only for programs that use it.
            #[inline]
            fn into_layer(self) -> <$around as $crate::middleware::around::Around>::Layer {
                use $crate::middleware::around::Middleware;

                let layer = alloc::sync::Arc::new(self);
                Middleware::<$around, ()>::into_layer(move |request, next| {
                    let layer = alloc::sync::Arc::clone(&layer);
                    async move { layer.around::<$around>(request, next).await }
                })
            }
        }
    )+ };
}
pub(crate) use layer;

layer!(ThreadSafe: super::AccessLog, super::RateLimit);
layer!(Local: super::AccessLog, super::RateLimit);

/// Middleware for some requests only: returned by [`when`].
#[derive(Clone, Copy, Debug)]
pub struct When<F, L>(F, L);

/// Applies `middleware` only to requests for which `condition` returns `true`. The others skip it.
///
/// ```
/// use core::time::Duration;
/// use mcp_sansio_handlers::Server;
/// use mcp_sansio_handlers::middleware::{RateLimit, ServerRequest, when};
///
/// let is_report = |request: &ServerRequest| request.target().as_deref() == Some("report");
/// let server = Server::new("s", "1.0.0")
///     .middleware(when(is_report, RateLimit::new(5, Duration::from_secs(60))));
/// # let _ = server;
/// ```
pub const fn when<Q, F: Fn(&Q) -> bool, L>(condition: F, middleware: L) -> When<F, L> {
    When(condition, middleware)
}

impl<A, F, L, M> Middleware<A, When<(), M>> for When<F, L>
where
    A: AroundSend,
    F: Fn(&A::Request) -> bool + Send + Sync + 'static,
    L: Middleware<A, M>,
{
    fn into_layer(self) -> A::Layer {
        let (condition, inner) = (self.0, self.1.into_layer());
        let skip = async |request, next: Next<A>| next.run(request).await;
        let skip = Middleware::<A, ()>::into_layer(skip);
        Arc::new(
            move |request, next| {
                if condition(&request) { inner(request, next) } else { skip(request, next) }
            },
        )
    }
}

impl<F, L, M> Middleware<Local, When<(), M>> for When<F, L>
where
    F: Fn(&super::ServerRequest) -> bool + 'static,
    L: Middleware<Local, M>,
{
    fn into_layer(self) -> <Local as Around>::Layer {
        let (condition, inner) = (self.0, self.1.into_layer());
        let skip = async |request, next: Next<Local>| next.run(request).await;
        let skip = Middleware::<Local, ()>::into_layer(skip);
        Rc::new(
            move |request, next| {
                if condition(&request) { inner(request, next) } else { skip(request, next) }
            },
        )
    }
}

/// The middleware of a server or a host, the outermost first.
#[allow(unnameable_types, reason = "only this crate uses it")]
pub struct Layers<A: Around> {
    list: Vec<A::Layer>,
    /// Counts the connections of the server or host.
    connections: Arc<AtomicUsize>,
}

impl<A: Around> Layers<A> {
    pub(crate) fn get(&self, index: usize) -> Option<&A::Layer> {
        self.list.get(index)
    }

    /// Adds the innermost.
    pub(crate) fn push(&mut self, layer: A::Layer) {
        self.list.push(layer);
    }

    /// Returns the number of a new connection.
    pub(crate) fn connect(&self) -> usize {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }
}

impl<A: Around> Default for Layers<A> {
    fn default() -> Self {
        Self { list: Vec::new(), connections: Arc::default() }
    }
}

impl<A: Around> Clone for Layers<A> {
    fn clone(&self) -> Self {
        Self { list: self.list.clone(), connections: Arc::clone(&self.connections) }
    }
}

impl<A: Around> fmt::Debug for Layers<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layers").field("length", &self.list.len()).finish_non_exhaustive()
    }
}

pub(crate) mod sealed {
    /// Only this crate implements [`Around`](super::Around).
    #[allow(unnameable_types, reason = "sealed: other crates cannot implement it")]
    pub trait Sealed {}

    impl<K: crate::threading::Threading> Sealed for K {}
}
