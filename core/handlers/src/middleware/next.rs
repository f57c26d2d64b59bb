use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use alloc::sync::Arc;

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::Method;
use serde::Serialize;

use crate::context::RequestParts;
use crate::json_object::with_member;
use crate::panics::PanicGuard;
use crate::reply::{ForTool, HandlerError, IntoOutcome, Outcome, ResultBody};
use crate::server::Handlers;
use crate::threading::{Step, ThreadSafe, Threading};

use super::layers::Layers as _;
use super::server_request::ServerRequest;

/// The result of a handler, as middleware sees it and returns it.
///
/// Errors have the same effect as those of a handler: [`HandlerError::Failed`] of a tool becomes a
/// result that the model sees. [`HandlerError::InputRequired`] is not a failure.
pub type MiddlewareResult = Result<ResultBody, HandlerError>;

/// The next step of a request: the next middleware, or the handler.
pub struct Next<K: Threading = ThreadSafe> {
    request: ServerRequest,
    function: K::Function,
    handlers: Arc<Handlers<K>>,
    index: usize,
}

impl<K: Threading> Next<K> {
    pub(super) const fn new(
        request: ServerRequest,
        function: K::Function,
        handlers: Arc<Handlers<K>>,
    ) -> Self {
        Self { request, function, handlers, index: 0 }
    }

    /// Runs the rest of the middleware, and the handler. To try again, call it again: the handler
    /// then starts anew.
    ///
    /// Dropping the future cancels the handler as its client can: an `async` one is dropped, a
    /// [`blocking`](crate::blocking()) one sees
    /// [`is_cancelled`](crate::Context::is_cancelled). A panic inside is an internal error.
    pub async fn run(&self) -> MiddlewareResult {
        let guard = self.request.parts().guard;
        let outcome = match guard.run(|| self.step()) {
            Ok(Step::Ready(outcome)) => outcome,
            Ok(Step::Pending(task)) => Guarded { task: Some(task), guard }.await,
            Err(panicked) => panicked.into(),
        };
        into_result(outcome)
    }

    /// Tells the inner middleware when the request ends, unless that is already sooner. It does not
    /// end then: [`Timeout`](super::Timeout) uses it, and ends the request.
    #[must_use]
    pub fn deadline(&self, deadline: Instant) -> Self {
        let mut next = self.clone();
        next.request.limit(deadline);
        next
    }

    /// Gives the inner middleware and the handler other parameters: a JSON object, with `_meta`.
    ///
    /// They remain those of the method: the name, URI or task that the request names must stay, since
    /// the caller's permissions were checked for it; arguments of a tool are validated again. The
    /// values that the machine has read from the old ones stay in force: the revision, the capabilities of the
    /// client, the progress token and the answers to input requests.
    ///
    /// ```
    /// use mcp_sansio::jsonrpc::RawJson;
    /// use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, ServerRequest};
    ///
    /// /// Searches in everything, whatever the client says.
    /// async fn everywhere(request: ServerRequest, next: Next) -> MiddlewareResult {
    ///     if request.target().as_deref() != Some("search") {
    ///         return next.run().await;
    ///     }
    ///     let params = r#"{"name":"search","arguments":{"scope":"all"}}"#;
    ///     next.params(RawJson::parse(params)?)?.run().await
    /// }
    /// # let _ = everywhere;
    /// ```
    ///
    /// # Errors
    ///
    /// The error of invalid arguments, as if the client had sent them; otherwise an internal error,
    /// because the fault is that of the middleware.
    pub fn params(&self, params: RawJson<'_>) -> Result<Self, HandlerError> {
        Ok(Self { request: self.request.with_params(params)?, ..self.clone() })
    }

    /// Adds an entry to the `_meta` that the inner middleware and the handler see, or replaces it.
    ///
    /// # Errors
    ///
    /// The value cannot be serialized: an internal error.
    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-030]: the other entries stay.
    pub fn insert_meta<T: Serialize + ?Sized>(
        &self,
        key: &str,
        value: &T,
    ) -> Result<Self, HandlerError> {
        let value = RawJson::from_serialize(value)?;
        self.with_meta(&with_member(&self.request.meta(), key, Some(&value)))
    }

    /// Removes an entry of the `_meta` that the inner middleware and the handler see.
    ///
    /// # Errors
    ///
    /// None that a request of a client can cause: see [`params`](Self::params).
    pub fn remove_meta(&self, key: &str) -> Result<Self, HandlerError> {
        self.with_meta(&with_member(&self.request.meta(), key, None))
    }

    fn with_meta(&self, meta: &RawJson<'_>) -> Result<Self, HandlerError> {
        self.params(with_member(self.request.params(), "_meta", Some(meta)))
    }

    /// Calls the next middleware, or the handler. A plain handler does its work in this call.
    pub(super) fn step(&self) -> Step<K> {
        let layer = self.handlers.layers.as_ref().and_then(|layers| layers.get(self.index));
        match layer {
            Some(layer) => {
                let next = Self { index: self.index + 1, ..self.clone() };
                Step::Pending(layer(self.request.clone(), next))
            }
            None => self.handle(),
        }
    }

    fn handle(&self) -> Step<K> {
        let parts = self.request.parts();
        (self.function)(RequestParts {
            params: &parts.request.params,
            revision: parts.request.revision,
            call: Some(&parts.incoming(self.request.deadline())),
            states: self.handlers.state_map(),
            spawner: self.handlers.spawner.as_ref(),
            default_spawner: parts.default_spawner,
            cancelled: None,
            #[cfg(feature = "observer")]
            observation: parts.observation.as_ref(),
        })
    }
}

impl<K: Threading> Clone for Next<K> {
    fn clone(&self) -> Self {
        Self {
            request: self.request.clone(),
            function: self.function.clone(),
            handlers: Arc::clone(&self.handlers),
            index: self.index,
        }
    }
}

impl<K: Threading> fmt::Debug for Next<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("request", &self.request).finish_non_exhaustive()
    }
}

fn into_result(outcome: Outcome) -> MiddlewareResult {
    match outcome {
        Outcome::Result(body) => Ok(body),
        Outcome::Error(error) => Err(HandlerError::Protocol(error)),
        Outcome::InputRequired(required) => Err(HandlerError::InputRequired(required)),
        #[cfg(feature = "http")]
        Outcome::Refused(refusal) => Err(HandlerError::Refused(refusal)),
    }
}

/// Converts the result of a middleware for `request`.
pub(super) fn into_outcome(result: MiddlewareResult, request: &ServerRequest) -> Outcome {
    match result {
        Ok(body) => Outcome::Result(body),
        Err(error) if *request.method() == Method::ToolsCall => {
            IntoOutcome::<ForTool>::into_outcome(Err::<(), _>(error))
        }
        Err(error) => error.into_outcome(),
    }
}

/// A running handler whose panics become errors.
struct Guarded<F> {
    task: Option<F>,
    guard: PanicGuard,
}

impl<F: Future<Output = Outcome> + Unpin> Future for Guarded<F> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let Self { task, guard } = self.get_mut();
        let Some(running) = task else { return Poll::Pending };
        let outcome = match guard.run(|| Pin::new(running).poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(outcome)) => outcome,
            Err(panicked) => panicked.into(),
        };
        guard.drop(task.take());
        Poll::Ready(outcome)
    }
}

impl<F> Drop for Guarded<F> {
    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-033]
    fn drop(&mut self) {
        // The destructor of a cancelled handler may panic as well.
        let guard = self.guard;
        guard.drop(self.task.take());
    }
}
