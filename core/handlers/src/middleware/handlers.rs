//! Middleware around the handlers of a server.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{MethodName, Request};
use mcp_sansio::protocol::CallToolResult;
use mcp_sansio::{Caller, Instant, Method, Principal};

use super::access_log::{AccessOutcome, AccessRecord};
use super::around::{Around, Layers, Middleware, MiddlewareResult, Next};
use super::rate_limit::{self, CallerKey};
use super::server_request::{EndpointClock, Parts, ServerRequest, SleepTable, Wrapped};
use crate::context::{CommandSender, RequestParts};
use crate::dispatch::Invocation;
use crate::executor::PanicGuard;
#[cfg(feature = "http")]
use crate::http_server::HttpServerMachine;
use crate::reply::{HandlerError, IntoOutcome, Outcome, ResultBody, Written};
use crate::server::{Handlers, MethodHandler, Server};
use crate::server_endpoint::StreamServer;
use crate::threading::{Step, ThreadSafe, Threading};

impl<K: Threading> Around for K {
    type Request = ServerRequest;
    type Body = ResultBody;
    type Error = HandlerError;
    type Layer = K::Middleware;
    type Task = <K as Threading>::Future<Outcome>;
    type Target = HandlerTarget<K>;
    type Running = HandlerRun<K>;
    type Output = Outcome;

    fn run(next: &Next<K>, request: ServerRequest) -> HandlerRun<K> {
        let guard = request.parts().guard;
        let step = guard.run(|| next.step(request));
        HandlerRun {
            step: Some(step.unwrap_or_else(|panicked| Step::Ready(panicked.into()))),
            guard,
        }
    }

    fn is_tool(request: &ServerRequest) -> bool {
        *request.method() == Method::ToolsCall
    }

    fn output(result: MiddlewareResult<K>, is_tool: bool) -> Outcome {
        match result {
            Ok(body) => Outcome::Result(body),
            Err(error) if is_tool => {
                IntoOutcome::<CallToolResult>::into_outcome(Err::<(), _>(error))
            }
            Err(error) => error.into_outcome(),
        }
    }

    fn now(request: &ServerRequest) -> Instant {
        request.now()
    }

    fn sleep(request: &ServerRequest, pause: Duration) -> impl Future<Output = ()> {
        request.sleep(pause)
    }

    fn caller(request: &ServerRequest) -> CallerKey {
        let (caller, endpoint) = (request.caller(), request.clock().endpoint());
        match caller.principal() {
            Some(principal) => CallerKey::Known(principal.clone()),
            None if Caller::is_owner(caller) => CallerKey::Owner(endpoint),
            None => CallerKey::Anonymous(endpoint),
        }
    }

    fn rate_exceeded(retry_after: Duration) -> HandlerError {
        rate_limit::refusal(retry_after)
    }

    fn record(request: &ServerRequest, write: impl FnOnce(AccessRecord<'_>)) {
        write(AccessRecord {
            started: request.now(),
            duration: Duration::ZERO,
            method: request.method().as_str(),
            target: request.target().as_deref(),
            principal: request.principal().map(Principal::as_str),
            revision: request.revision(),
            id: request.id(),
            outcome: AccessOutcome::Cancelled,
        });
    }

    fn outcome(result: &MiddlewareResult<K>) -> AccessOutcome {
        AccessOutcome::of_handler(result)
    }
}

/// The handler that the middleware of a request is around.
#[allow(missing_debug_implementations, unnameable_types, reason = "only this crate uses it")]
pub struct HandlerTarget<K: Threading> {
    function: K::Function,
    handlers: Arc<Handlers<K>>,
}

impl<K: Threading> Clone for HandlerTarget<K> {
    fn clone(&self) -> Self {
        Self { function: self.function.clone(), handlers: Arc::clone(&self.handlers) }
    }
}

impl<K: Threading> Next<K> {
    /// Calls the next middleware, or the handler. A plain handler does its work in this call.
    fn step(&self, request: ServerRequest) -> Step<K> {
        let HandlerTarget { function, handlers } = &self.target;
        if let Some(layer) = handlers.layers.as_ref().and_then(|layers| layers.get(self.index)) {
            return Step::Pending(layer(request, self.after()));
        }
        let parts = request.parts();
        function(RequestParts {
            params: &parts.request.params,
            revision: parts.request.revision,
            call: Some(&parts.incoming()),
            states: handlers.state_map(),
            spawner: parts.spawner.as_ref(),
            guard: parts.guard,
            cancelled: None,
            observation: parts.observation.as_ref(),
            server: None,
        })
    }
}

/// A running step, whose panics become errors.
#[allow(missing_debug_implementations, unnameable_types, reason = "only this crate uses it")]
pub struct HandlerRun<K: Threading> {
    /// `None` once it has ended.
    step: Option<Step<K>>,
    guard: PanicGuard,
}

impl<K: Threading> Unpin for HandlerRun<K> {}

impl<K: Threading> Future for HandlerRun<K> {
    type Output = MiddlewareResult<K>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { step, guard } = self.get_mut();
        if let Some(Step::Pending(task)) = step {
            let outcome = match guard.run(|| Pin::new(task).poll(cx)) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(outcome)) => outcome,
                Err(panicked) => panicked.into(),
            };
            guard.drop(step.replace(Step::Ready(outcome)));
        }
        match step.take() {
            Some(Step::Ready(outcome)) => Poll::Ready(into_result(outcome)),
            _ => Poll::Pending,
        }
    }
}

impl<K: Threading> Drop for HandlerRun<K> {
    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-033]
    fn drop(&mut self) {
        // The destructor of a cancelled handler may panic as well.
        let guard = self.guard;
        guard.drop(self.step.take());
    }
}

fn into_result(outcome: Outcome) -> Result<ResultBody, HandlerError> {
    match outcome {
        Outcome::Result(body) => Ok(body),
        Outcome::Error(error) => Err(HandlerError::Protocol(error)),
        Outcome::Panicked(panicked) => Err(HandlerError::Panicked(panicked)),
        Outcome::InputRequired(required) => Err(HandlerError::InputRequired(required)),
        Outcome::Refused(refusal) => Err(HandlerError::Refused(refusal)),
    }
}

/// The middleware of a server.
///
/// A trait, so that the binary of a server without middleware contains no code for it: only
/// [`Server::middleware`](crate::Server::middleware) refers to the implementation.
#[allow(unnameable_types, reason = "only this crate uses it")]
pub trait ServerLayers<K: Threading>: fmt::Debug {
    /// Returns a middleware, counted from the outermost.
    fn get(&self, index: usize) -> Option<&K::Middleware>;

    /// Returns a list with one more, the innermost.
    fn with(&self, layer: K::Middleware) -> K::Layers;

    /// Creates the clock of an endpoint.
    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn open_clock(&self, commands: &CommandSender) -> Arc<dyn EndpointClock>;

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

impl<K: Threading> ServerLayers<K> for Layers<K> {
    fn get(&self, index: usize) -> Option<&K::Middleware> {
        Self::get(self, index)
    }

    fn with(&self, layer: K::Middleware) -> K::Layers {
        let mut layers = self.clone();
        layers.push(layer);
        K::layers(layers)
    }

    #[allow(private_interfaces, reason = "only this crate uses it")]
    fn open_clock(&self, commands: &CommandSender) -> Arc<dyn EndpointClock> {
        Arc::new(SleepTable::new(Arc::clone(commands), self.connect()))
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
            spawner: invocation.spawner.cloned(),
            observation: invocation.observation,
            details: invocation.details,
        });
        let first =
            Next::new(HandlerTarget { function, handlers: Arc::clone(invocation.handlers) });
        guard.run(|| first.step(request)).unwrap_or_else(|panicked| Step::Ready(panicked.into()))
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

impl<K: Threading> Server<K> {
    /// Adds middleware around the handlers of all requests, inside of that of earlier calls: see
    /// the [module](crate::middleware).
    ///
    /// All connections of the server share its state, such as the buckets of a
    /// [`RateLimit`](super::RateLimit).
    #[must_use]
    pub fn middleware<M>(mut self, middleware: impl Middleware<K, M>) -> Self {
        self.add_layer(middleware.into_layer());
        self
    }

    pub(crate) fn add_layer(&mut self, layer: K::Middleware) {
        let handlers = self.functions();
        let layers = handlers.layers.get_or_insert_with(|| K::layers(Layers::default()));
        *layers = layers.with(layer);
    }

    /// Lets requests for lists pass the middleware as well: `tools/list`, `prompts/list`,
    /// `resources/list` and `resources/templates/list`. Without it, the protocol layer answers
    /// them.
    ///
    /// [`Next::run`] returns the page that the client would get, and the
    /// middleware may return another. It sees a change of the catalog at once, but clients that
    /// keep lists learn of a middleware that begins to decide differently only from
    /// [`ServerHandle::edit_catalog`](crate::ServerHandle::edit_catalog), or when the list expires.
    ///
    /// ```
    /// use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, ServerRequest};
    /// use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
    ///
    /// async fn label(request: ServerRequest, next: Next) -> MiddlewareResult {
    ///     let revision = request.revision();
    ///     let is_list = request.is_list();
    ///     let result = next.run(request).await?;
    ///     if !is_list {
    ///         return Ok(result);
    ///     }
    ///     Ok(result.insert_meta("com.example/region", "north", revision)?)
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
        self.options.policy_mut().deliver_lists = true;
        let handlers = self.functions();
        handlers.layers.get_or_insert_with(|| K::layers(Layers::default()));
        for method in LISTS {
            let (method, declare) = (method.as_str().into(), None);
            let function = K::from_thread_safe(Arc::new(answer_list));
            handlers.set_method(MethodHandler { method, function, declare });
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
