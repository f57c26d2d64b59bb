use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(feature = "http")]
use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{ListRequests, MethodName, Request};
use mcp_sansio::protocol::Method;

use crate::context::{CommandSender, RequestParts};
use crate::dispatch::Invocation;
#[cfg(feature = "http")]
use crate::machines::HttpServerMachine;
use crate::machines::StreamServer;
use crate::reply::{Outcome, ResultBody, Written};
use crate::server::Server;
use crate::threading::{Local, Step, ThreadSafe, Threading};

use super::endpoint_clock::{EndpointClock, SleepTable};
use super::next::{MiddlewareResult, Next, into_outcome};
use super::server_request::{Parts, ServerRequest, Wrapped};

/// A function or a type that can be registered with
/// [`Server::middleware`](crate::Server::middleware): an `async` function or closure that takes a
/// [`ServerRequest`] and a [`Next`] and returns a [`MiddlewareResult`], or one of the types in this
/// [module](super).
///
/// `M` tells them apart; the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "this cannot be registered as middleware here",
    label = "not middleware: wrong parameters or wrong result",
    note = "middleware is an `async fn(ServerRequest, Next) -> MiddlewareResult`; for `Server::local` it takes `Next<Local>`",
    note = "values that it captures are `Send`, `Sync` and `Clone`; `Server::local` has no such bounds"
)]
pub trait Middleware<K: Threading, M> {
    /// Converts it into the stored form.
    fn into_middleware(self) -> K::Middleware;

    /// Returns a function to call with the URI of each resource that changes, before its subscribers
    /// are notified.
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn resource_observer(&self) -> Option<ResourceObserver> {
        None
    }
}

/// A function that is told the URIs of changed resources.
pub(crate) type ResourceObserver = Arc<dyn Fn(&str) + Send + Sync>;

/// Marks functions.
#[derive(Clone, Copy, Debug)]
pub enum FunctionMarker {}

/// Marks the types of this crate.
#[derive(Clone, Copy, Debug)]
pub enum LayerMarker {}

// Cloned for each call, like handlers, so that an `async move` closure may capture values.
impl<F, R> Middleware<ThreadSafe, FunctionMarker> for F
where
    F: FnOnce(ServerRequest, Next) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = MiddlewareResult> + Send + 'static,
{
    fn into_middleware(self) -> <ThreadSafe as Threading>::Middleware {
        Arc::new(move |request, next| {
            let function = self.clone();
            Box::pin(async move {
                let result = function(request.clone(), next).await;
                into_outcome(result, &request)
            })
        })
    }
}

impl<F> Middleware<Local, FunctionMarker> for F
where
    F: AsyncFn(ServerRequest, Next<Local>) -> MiddlewareResult + 'static,
{
    fn into_middleware(self) -> <Local as Threading>::Middleware {
        let function = Rc::new(self);
        Rc::new(move |request, next| {
            let function = Rc::clone(&function);
            Box::pin(async move {
                let result = function(request.clone(), next).await;
                into_outcome(result, &request)
            })
        })
    }
}

/// Implements [`Middleware`] for a type with an asynchronous method `around(&self, &ServerRequest,
/// Next<K>) -> MiddlewareResult`. Calls share the value. A second argument names the method that
/// returns its [`ResourceObserver`].
macro_rules! layer {
    ($layer:ty $(, $observer:ident)?) => {
        layer!($layer, ThreadSafe, Arc $(, $observer)?);
        layer!($layer, Local, Rc $(, $observer)?);
    };
    ($layer:ty, $threading:ident, $shared:ident $(, $observer:ident)?) => {
        const _: () = {
            use alloc::boxed::Box;
            #[allow(unused_imports, reason = "each kind uses one of them")]
            use alloc::{rc::Rc, sync::Arc};

            use $crate::middleware::layers::{LayerMarker, Middleware};
            use $crate::middleware::next::into_outcome;
            use $crate::threading::{Threading, $threading};

            impl Middleware<$threading, LayerMarker> for $layer {
                // Inline, so that a layer is compiled only for programs that use it.
                #[inline]
                fn into_middleware(self) -> <$threading as Threading>::Middleware {
                    let layer = Arc::new(self);
                    $shared::new(move |request, next| {
                        let layer = Arc::clone(&layer);
                        Box::pin(async move {
                            let result = layer.around(&request, next).await;
                            into_outcome(result, &request)
                        })
                    })
                }
                $(
                    #[inline]
                    fn resource_observer(
                        &self,
                    ) -> Option<$crate::middleware::layers::ResourceObserver> {
                        Some(self.$observer())
                    }
                )?
            }
        };
    };
}
pub(super) use layer;

/// The middleware of a server.
///
/// A trait, so that the binary of a server without middleware contains no code for it: only
/// [`Server::middleware`](crate::Server::middleware) refers to the implementation.
#[allow(unnameable_types, reason = "only this crate uses it")]
pub trait Layers<K: Threading>: fmt::Debug {
    /// Returns a middleware, counted from the outermost.
    fn get(&self, index: usize) -> Option<&K::Middleware>;

    /// Returns a list with one more, the innermost.
    fn with(&self, middleware: K::Middleware, observer: Option<ResourceObserver>) -> K::Layers;

    /// Creates the clock of an endpoint.
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn open_clock(&self, commands: &CommandSender) -> Arc<dyn EndpointClock>;

    /// Creates the clock of another driver of an endpoint: its shard.
    #[cfg(feature = "http")]
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn open_clock_of(&self, commands: &CommandSender, endpoint: usize) -> Arc<dyn EndpointClock>;

    /// Calls the outermost middleware.
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn call(
        &self,
        invocation: Invocation<'_, K>,
        wrapped: Box<Wrapped>,
        request: &Request<'_>,
    ) -> Step<K>;

    /// Calls the outermost middleware.
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn call_on_stream(
        &self,
        invocation: Invocation<'_, K>,
        machine: &StreamServer,
        clock: &Arc<dyn EndpointClock>,
        request: &Request<'_>,
    ) -> Step<K>;

    /// Returns the inputs of a [`call`](Self::call) at `now`.
    #[cfg(feature = "http")]
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn wrap(
        &self,
        machine: &HttpServerMachine,
        clock: &Arc<dyn EndpointClock>,
        request: &Request<'_>,
        now: Instant,
    ) -> Box<Wrapped>;
}

/// The middleware of a server, the outermost first.
#[allow(unnameable_types, reason = "only this crate uses it")]
pub struct LayerList<K: Threading> {
    layers: Vec<K::Middleware>,
    /// Those of the middleware that have one.
    observers: Vec<ResourceObserver>,
    /// Counts the endpoints of the server.
    endpoints: Arc<AtomicUsize>,
}

/// A middleware in its stored form.
pub(crate) struct Layer<K: Threading> {
    middleware: K::Middleware,
    observer: Option<ResourceObserver>,
}

impl<K: Threading> Layer<K> {
    pub(crate) fn new<M>(middleware: impl Middleware<K, M>) -> Self {
        let observer = middleware.resource_observer();
        Self { middleware: middleware.into_middleware(), observer }
    }
}

impl<K: Threading> LayerList<K> {
    fn new() -> Self {
        Self { layers: Vec::new(), observers: Vec::new(), endpoints: Arc::default() }
    }
}

impl<K: Threading> Layers<K> for LayerList<K> {
    fn get(&self, index: usize) -> Option<&K::Middleware> {
        self.layers.get(index)
    }

    fn with(&self, middleware: K::Middleware, observer: Option<ResourceObserver>) -> K::Layers {
        let (mut layers, mut observers) = (self.layers.clone(), self.observers.clone());
        layers.push(middleware);
        observers.extend(observer);
        K::layers(Self { layers, observers, endpoints: Arc::clone(&self.endpoints) })
    }

    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn open_clock(&self, commands: &CommandSender) -> Arc<dyn EndpointClock> {
        let endpoint = self.endpoints.fetch_add(1, Ordering::Relaxed);
        Arc::new(SleepTable::new(Arc::clone(commands), self.observers.clone(), endpoint))
    }

    #[cfg(feature = "http")]
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn open_clock_of(&self, commands: &CommandSender, endpoint: usize) -> Arc<dyn EndpointClock> {
        Arc::new(SleepTable::new(Arc::clone(commands), self.observers.clone(), endpoint))
    }

    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn call(
        &self,
        invocation: Invocation<'_, K>,
        wrapped: Box<Wrapped>,
        request: &Request<'_>,
    ) -> Step<K> {
        let guard = invocation.guard;
        let function = match invocation.function {
            Ok(function) => function.clone(),
            Err(outcome) => return Step::Ready(*outcome),
        };
        let request = ServerRequest::new(Parts {
            request: request.clone().into_owned(),
            wrapped,
            commands: Arc::clone(invocation.commands),
            tasks: invocation.tasks,
            is_task: invocation.is_task,
            guard,
            default_spawner: invocation.default_spawner,
            #[cfg(feature = "observer")]
            observation: invocation.observation,
            #[cfg(feature = "extensions")]
            client_extensions: invocation.client_extensions,
        });
        let first = Next::new(request, function, Arc::clone(invocation.handlers));
        guard.run(|| first.step()).unwrap_or_else(|panicked| Step::Ready(panicked.into()))
    }

    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn call_on_stream(
        &self,
        invocation: Invocation<'_, K>,
        machine: &StreamServer,
        clock: &Arc<dyn EndpointClock>,
        request: &Request<'_>,
    ) -> Step<K> {
        let wrapped = Wrapped::new(machine, clock, request);
        self.call(invocation, wrapped, request)
    }

    #[cfg(feature = "http")]
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn wrap(
        &self,
        machine: &HttpServerMachine,
        clock: &Arc<dyn EndpointClock>,
        request: &Request<'_>,
        now: Instant,
    ) -> Box<Wrapped> {
        clock.advance(now);
        Wrapped::new(machine, clock, request)
    }
}

impl<K: Threading> fmt::Debug for LayerList<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layers").field("length", &self.layers.len()).finish_non_exhaustive()
    }
}

impl<K: Threading> Server<K> {
    /// Adds middleware around the handlers of all requests, inside of that of earlier calls: see
    /// the [module](crate::middleware).
    ///
    /// All connections of the server share its state, such as the buckets of a
    /// [`RateLimit`](super::RateLimit).
    #[must_use]
    pub fn middleware<M>(mut self, middleware: impl Middleware<K, M>) -> Self {
        self.add_layer(Layer::new(middleware));
        self
    }

    pub(crate) fn add_layer(&mut self, layer: Layer<K>) {
        let Layer { middleware, observer } = layer;
        let handlers = self.functions();
        let layers = handlers.layers.get_or_insert_with(|| K::layers(LayerList::new()));
        *layers = layers.with(middleware, observer);
    }

    /// Lets requests for lists pass the middleware as well: `tools/list`, `prompts/list`,
    /// `resources/list` and `resources/templates/list`. Without it, the protocol layer answers them.
    ///
    /// [`Next::run`](super::Next::run) returns the page that the client would get, and the
    /// middleware may return another. It sees a change of the catalog at once, but clients that keep
    /// lists learn of a middleware that begins to decide differently only from
    /// [`ServerHandle::edit_catalog`](crate::ServerHandle::edit_catalog), or when the list expires.
    ///
    #[cfg_attr(feature = "schemars", doc = "```")]
    #[cfg_attr(not(feature = "schemars"), doc = "```ignore")]
    /// use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, ServerRequest};
    /// use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
    ///
    /// async fn label(request: ServerRequest, next: Next) -> MiddlewareResult {
    ///     let result = next.run().await?;
    ///     if !request.is_list() {
    ///         return Ok(result);
    ///     }
    ///     Ok(result.insert_meta("com.example/region", "north", request.revision())?)
    /// }
    ///
    /// let server = Server::new("weather", "1.0.0")
    ///     .middleware(label)
    ///     .lists_through_middleware()
    ///     .tool("forecast", "The weather", |_: Call<NoArguments>| "Sunny");
    /// # let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("demo", "1.0.0"));
    /// # let meta = pair.run(client.list_tools(None))?.meta.unwrap();
    /// # assert!(meta.get("com.example/region").is_some());
    /// # Ok::<(), mcp_sansio_handlers::ClientError>(())
    /// ```
    #[must_use]
    pub fn lists_through_middleware(mut self) -> Self {
        self.options.policy_mut().lists = ListRequests::Deliver;
        let handlers = self.functions();
        handlers.layers.get_or_insert_with(|| K::layers(LayerList::new()));
        for method in LISTS {
            let find = |(known, _): &(String, K::Function)| (**known).cmp(method.as_str());
            if let Err(place) = handlers.others.binary_search_by(find) {
                let function = K::from_thread_safe(Arc::new(answer_list));
                handlers.others.insert(place, (method.as_str().into(), function));
            }
        }
        self
    }
}

const LISTS: [Method; 4] =
    [Method::ToolsList, Method::PromptsList, Method::ResourcesList, Method::ResourcesTemplatesList];

/// Answers a list request behind the middleware.
fn answer_list(parts: RequestParts<'_, '_>) -> Step<ThreadSafe> {
    let page = parts.call.and_then(|call| {
        let MethodName::Known(method) = call.request.method else { return None };
        let (params, revision) = (&call.request.params, call.request.revision);
        Some(call.lists?.page(method, params, revision, &call.request.caller))
    });
    Step::Ready(match page {
        Some(Ok(page)) => Outcome::Result(ResultBody::boxed(Written(page))),
        Some(Err(error)) => Outcome::Error(error),
        None => Outcome::Error(ErrorObject::internal("this is no request for a list")),
    })
}
