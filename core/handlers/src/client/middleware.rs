//! Middleware around the calls of a client.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use mcp_sansio::gate::SubjectKind;
use mcp_sansio::jsonrpc::{Json, RawJson, WriteError};
use mcp_sansio::peer::{
    CallOptions, ClientMachine, HeaderFields, InvalidHeader, MethodName, Progress,
};
use mcp_sansio::{Instant, Revision};
use mcp_sansio_sync::Mutex;
use serde::Serialize;

use super::endpoint::ClientEndpoint;
use super::host::{CacheMode, Host};
use super::pending::{CallFuture, ClientCall, OnProgress, Pending};
use super::{Client, ClientError, Session};
use crate::middleware::access_log::{AccessOutcome, AccessRecord};
use crate::middleware::around::sealed::Sealed;
use crate::middleware::around::{
    Around, AroundSend, Layers, Middleware, MiddlewareResult, Next, layer,
};
use crate::middleware::rate_limit::CallerKey;
use crate::middleware::{AccessLog, RateLimit};
use crate::reply::{has_members, with_member, with_meta_entry};
use crate::threading::Threading;

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

    fn rate_exceeded(retry_after: Duration) -> ClientError {
        ClientError::RateExceeded { retry_after }
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

impl Sealed for Calls {}

layer!(Calls: AccessLog, RateLimit);

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

mcp_sansio::partial_debug! { impl Debug for LayeredCall }

/// The middleware of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionLayers {
    layers: Layers<Calls>,
    /// The number of the connection among those of its host.
    pub(crate) number: usize,
    now: Mutex<Instant>,
}

impl ConnectionLayers {
    pub(crate) fn connect(layers: &Layers<Calls>) -> Box<Self> {
        let number = layers.connect();
        Box::new(Self { layers: layers.clone(), number, now: Mutex::default() })
    }

    pub(crate) fn now(&self) -> Instant {
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

// ------------------------------------------------------------------ calls as middleware sees them

/// A call of a client before it is sent, as the host's middleware sees it. Changes reach the inner
/// middleware and the server.
///
/// The method cannot be changed, because the caller expects its result.
#[derive(Clone)]
pub struct ClientRequest {
    pub(crate) client: Client,
    pub(crate) method: MethodName<'static>,
    pub(crate) params: RawJson<'static>,
    pub(crate) options: CallOptions<'static>,
    pub(crate) fields: HeaderFields,
    pub(crate) cache_mode: CacheMode,
}

impl ClientRequest {
    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &MethodName<'static> {
        &self.method
    }

    /// Returns the name of the tool or prompt, or the URI of the resource or resource template,
    /// that the call names.
    #[must_use]
    pub fn target(&self) -> Option<Cow<'_, str>> {
        let subject = self.method.known()?.subject().filter(|it| *it != SubjectKind::Task)?;
        subject.find(&self.params).map(|(_, text)| text)
    }

    /// Whether the [method only reads](mcp_sansio::Method::is_read). Of a tool, only its
    /// definition says so.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self.method, MethodName::Known(method) if method.is_read())
    }

    /// Returns the parameters without `_meta`: a JSON object.
    #[must_use]
    pub const fn params(&self) -> &RawJson<'_> {
        &self.params
    }

    /// Replaces the parameters, which remain those of the method: a JSON object without `_meta`.
    /// Anything that is no object is not sent, and the call fails.
    pub fn set_params(&mut self, params: RawJson<'_>) {
        self.params = params.into_owned();
    }

    /// Returns the metadata that the caller and outer middleware set: a JSON object, `{}` if they
    /// set none. Entries that the client adds itself, such as its name and a progress token, are
    /// not included.
    #[must_use]
    pub fn meta(&self) -> &RawJson<'_> {
        self.options.meta.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT)
    }

    /// Adds an entry to `_meta`, or replaces it.
    ///
    /// # Errors
    ///
    /// The value cannot be serialized, or the key is invalid. The caller's fault.
    pub fn insert_meta<T: Serialize + ?Sized>(
        &mut self,
        key: &str,
        value: &T,
    ) -> Result<(), WriteError> {
        self.options.meta = Some(with_meta_entry(self.meta(), key, value)?);
        Ok(())
    }

    /// Removes an entry of `_meta`.
    pub fn remove_meta(&mut self, key: &str) {
        let rest = with_member(self.meta(), key, None);
        self.options.meta = has_members(&rest).then_some(rest);
    }

    /// Returns how long to wait for an answer or for progress, if the caller or outer middleware
    /// set it; otherwise the [`Timeouts`](mcp_sansio::peer::Timeouts) of the host apply.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.options.timeout
    }

    /// Sets how long to wait for an answer or for progress.
    pub const fn set_timeout(&mut self, timeout: Duration) {
        self.options.timeout = Some(timeout);
    }

    /// Returns how long to wait in total, if the caller or outer middleware set it.
    #[must_use]
    pub const fn timeout_hard(&self) -> Option<Duration> {
        self.options.timeout_hard
    }

    /// Sets how long to wait in total, from the time at which the call is sent.
    pub const fn set_timeout_hard(&mut self, timeout: Duration) {
        self.options.timeout_hard = Some(timeout);
    }

    /// Adds a header field on HTTP: see [`ClientCall::header`](crate::ClientCall::header). On a
    /// byte stream the call then fails: find out with [`Client::is_http`].
    ///
    /// # Errors
    ///
    /// The field is not allowed. The caller's fault.
    pub fn insert_header(&mut self, name: &str, value: &str) -> Result<(), InvalidHeader> {
        self.fields.insert(name, value)
    }

    /// Whether the call is answered without the [cache](crate::Host::cache).
    #[must_use]
    pub fn is_reload(&self) -> bool {
        self.cache_mode == CacheMode::Reload
    }

    /// Returns the client that makes the call, for other calls: for example to list the tools. They
    /// pass the middleware as well, so guard against recursion.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the negotiated properties, once the connection is open.
    #[must_use]
    pub fn session(&self) -> Option<Arc<Session>> {
        self.client.session()
    }

    /// Returns the revision that governs the call.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.session().map_or(Revision::LATEST, |session| session.revision)
    }

    /// Returns the number of the connection among those of its host, from zero.
    #[must_use]
    pub fn connection(&self) -> usize {
        self.client.layers().map_or(0, |layers| layers.number)
    }

    /// Returns the time at which the adapter last drove the connection: this crate has no clock. To
    /// bring it up to date, [sleep](Self::sleep) for a duration of zero.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.client.layers().map_or(Instant::ZERO, |layers| layers.now())
    }

    /// Waits for `pause`, by the clock of the connection; no longer than the connection is open.
    pub async fn sleep(&self, pause: Duration) {
        // If the connection is closed, so will be the call.
        let _waited = self.client.sleep(pause).await;
    }
}

mcp_sansio::partial_debug! {
    /// Omits the parameters and the metadata, because logs have many readers.
    impl Debug for ClientRequest { method, .. }
}
