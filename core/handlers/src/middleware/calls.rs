//! Middleware around the calls of a client.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::Json;
use mcp_sansio::peer::{ClientMachine, Progress};
use mcp_sansio_sync::Mutex;

use crate::client::ClientError;
use crate::client_endpoint::ClientEndpoint;
use crate::host::Host;
use crate::pending::{CallFuture, ClientCall, OnProgress, Pending};
use crate::threading::Threading;

use super::access_log::{AccessOutcome, AccessRecord};
use super::around::{Around, AroundSend, Layers, Middleware, MiddlewareResult, Next, layer};
use super::client_request::ClientRequest;
use super::limit_error::LimitError;
use super::rate_limit::CallerKey;
use super::{AccessLog, RateLimit};

/// The calls of a client, as what middleware runs around: [`Next<Calls>`](Next).
#[derive(Clone, Copy, Debug)]
pub enum Calls {}

impl Around for Calls {
    type Request = ClientRequest;
    type Body = Json;
    type Error = ClientError;
    type Layer = Arc<dyn Fn(ClientRequest, Next<Self>) -> Self::Task + Send + Sync>;
    type Task = Pin<Box<dyn Future<Output = MiddlewareResult<Self>> + Send>>;
    type Target = CallTarget;
    type Running = CallRun;
    type Output = MiddlewareResult<Self>;

    fn run(next: &Next<Self>, request: ClientRequest) -> CallRun {
        let layer = request.client.layers().and_then(|layers| layers.layers.get(next.index));
        // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-034]: in the order of
        // registration, which the application determines.
        if let Some(layer) = layer.cloned() {
            return CallRun::Layer(layer(request, next.after()));
        }
        let wants_task = request.options.wants_task();
        let call = ClientCall::from_request(request, next.target.on_progress());
        let call = call.send();
        if wants_task {
            next.target.0.task.lock(|task| *task = Some(call.pending()));
        }
        CallRun::Call(call)
    }

    fn is_tool(_: &ClientRequest) -> bool {
        false
    }

    fn output(result: MiddlewareResult<Self>, _: bool) -> MiddlewareResult<Self> {
        result
    }

    fn now(request: &ClientRequest) -> Instant {
        request.now()
    }

    fn sleep(request: &ClientRequest, pause: Duration) -> impl Future<Output = ()> {
        request.sleep(pause)
    }

    fn caller(request: &ClientRequest) -> CallerKey {
        CallerKey::Owner(request.connection())
    }

    fn record(request: &ClientRequest, write: impl FnOnce(AccessRecord<'_>)) {
        write(AccessRecord {
            started: request.now(),
            duration: Duration::ZERO,
            method: request.method().as_str(),
            target: request.target().as_deref(),
            principal: None,
            revision: request.revision(),
            id: None,
            outcome: AccessOutcome::Cancelled,
        });
    }

    fn outcome(result: &MiddlewareResult<Self>) -> AccessOutcome {
        match result {
            Ok(result) => match result.as_raw().get("isError") {
                Some(is_error) if is_error.as_str() == "true" => AccessOutcome::ToolError,
                _ => AccessOutcome::Ok,
            },
            Err(error) => {
                let refusal = error.as_refusal();
                refusal.map_or(AccessOutcome::Failed, |error| AccessOutcome::Error(error.code))
            }
        }
    }
}

impl AroundSend for Calls {}

layer!(Calls: AccessLog, RateLimit);

impl From<LimitError> for ClientError {
    fn from(limit: LimitError) -> Self {
        Self::Limited(limit)
    }
}

/// A running step.
#[allow(missing_debug_implementations, unnameable_types, reason = "only this crate uses it")]
pub enum CallRun {
    Layer(<Calls as Around>::Task),
    Call(CallFuture<Json>),
}

impl Future for CallRun {
    type Output = MiddlewareResult<Calls>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Layer(task) => task.as_mut().poll(cx),
            Self::Call(call) => Pin::new(call).poll(cx),
        }
    }
}

/// State shared by the attempts to make a call.
#[derive(Clone)]
#[allow(missing_debug_implementations, unnameable_types, reason = "only this crate uses it")]
pub struct CallTarget(Arc<SentCall>);

struct SentCall {
    wants_progress: bool,
    /// The callback of the caller, except while it runs.
    on_progress: Mutex<Option<OnProgress>>,
    /// The last attempt of a call that becomes a task, whose progress continues.
    task: Mutex<Option<Arc<Pending>>>,
}

impl CallTarget {
    fn new(on_progress: Option<OnProgress>) -> Self {
        let wants_progress = on_progress.is_some();
        let on_progress = Mutex::new(on_progress);
        Self(Arc::new(SentCall { wants_progress, on_progress, task: Mutex::new(None) }))
    }

    /// Returns the progress callback of an attempt.
    fn on_progress(&self) -> Option<OnProgress> {
        let shared = self.0.wants_progress.then(|| Arc::clone(&self.0))?;
        Some(Box::new(move |progress: &Progress<'_>| {
            // It runs outside of the lock: it may make calls.
            let callback = shared.on_progress.lock(Option::take);
            let Some(mut callback) = callback else { return };
            callback(progress);
            shared.on_progress.lock(|place| *place = Some(callback));
        }))
    }
}

/// A call inside the host's middleware.
pub(crate) struct LayeredCall {
    pub(crate) future: <Calls as Around>::Task,
    target: CallTarget,
}

impl LayeredCall {
    pub(crate) fn new(request: ClientRequest, on_progress: Option<OnProgress>) -> Self {
        let target = CallTarget::new(on_progress);
        let next = Next::<Calls>::new(target.clone());
        Self { future: Box::pin(async move { next.run(request).await }), target }
    }

    /// Returns the last attempt, if the call becomes a task.
    pub(crate) fn task(&self) -> Option<Arc<Pending>> {
        self.target.0.task.lock(|task| task.clone())
    }
}

impl fmt::Debug for LayeredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LayeredCall")
    }
}

/// The middleware of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionLayers {
    layers: Layers<Calls>,
    /// The number of the connection among those of its host.
    pub(super) number: usize,
    now: Mutex<Instant>,
}

impl ConnectionLayers {
    pub(crate) fn connect(layers: &Layers<Calls>) -> Box<Self> {
        let number = layers.connect();
        Box::new(Self { layers: layers.clone(), number, now: Mutex::default() })
    }

    pub(super) fn now(&self) -> Instant {
        self.now.lock(|now| *now)
    }
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    /// Tells the middleware the time.
    pub(crate) fn advance_layers(&self, time: Instant) {
        if let Some(layers) = &self.shared.layers {
            layers.now.lock(|now| *now = time);
        }
    }
}

impl<K: Threading> Host<K> {
    /// Adds middleware around all calls of the host's clients, inside of that of earlier calls: see
    /// [`middleware`](crate::middleware#around-the-calls-of-a-client).
    ///
    /// All connections of the host share its state, such as the buckets of a [`RateLimit`].
    #[must_use]
    pub fn call_middleware<M>(mut self, middleware: impl Middleware<Calls, M>) -> Self {
        self.layers.get_or_insert_default().push(middleware.into_layer());
        self
    }
}
