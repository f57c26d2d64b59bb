//! Pending calls and open subscriptions of a client.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;

use mcp_sansio::jsonrpc::{RawJson, WriteError, WriteJson};
use mcp_sansio::peer::{
    CallHandle, CallOptions, Failure, HeaderFields, InvalidHeader, MethodName, Notification,
    Progress, Timeouts,
};
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio::{Instant, LoggingLevel, Method};
use mcp_sansio_sync::Mutex;
use serde::de::DeserializeOwned;

use super::host::CacheMode;
use super::middleware::{ClientRequest, LayeredCall};
use super::tasks::FollowedTask;
use super::{Client, ClientError, Command};
use crate::executor::PanicGuard;

/// The state of a call, shared by its caller and the driver.
pub(crate) struct Pending {
    inner: Mutex<Inner>,
}

struct Inner {
    handle: Option<CallHandle>,
    method: MethodName<'static>,
    options: CallOptions<'static>,
    fields: HeaderFields,
    cache_mode: CacheMode,
    on_progress: Option<OnProgress>,
    outcome: Option<Result<(), ClientError>>,
    /// The parameters until the call has a result, and then the result.
    text: String,
    /// Whether the call has an outcome, taken or not.
    ended: bool,
    /// The id of the task that a call asked for, as JSON text, until the application has a handle
    /// to the task.
    unclaimed_task: Option<Box<str>>,
    /// Whether the caller dropped the call: if it was not sent yet, it is not sent.
    abandoned: bool,
    /// Whether the driver has accepted the call, and must be told when the caller drops it.
    accepted: bool,
    /// The server and the name that the application called, if it called several servers.
    called_as: Option<Box<(Arc<str>, Box<str>)>>,
    honoured: Option<SubscriptionFilter>,
    /// Set for a subscription that is renewed automatically.
    renewal: Option<Box<Renewal>>,
    arrived: VecDeque<Notification<'static>>,
    /// The size of the queued notifications, in bytes.
    arrived_bytes: usize,
    waker: Option<Waker>,
}

/// The state that is needed to renew a subscription.
struct Renewal {
    filter: SubscriptionFilter,
    /// When the server acknowledged the subscription; `None` before that.
    since: Option<Instant>,
    /// Whether the subscription was acknowledged before its renewal.
    is_renewed: bool,
}

/// How long a subscription must be open before it is renewed. A server that ends it sooner does not
/// want it.
const RENEWAL_AFTER: Duration = Duration::from_secs(1);

pub(crate) type OnProgress = Box<dyn FnMut(&Progress<'_>) + Send>;

/// The most bytes of notifications that a subscription queues for its reader: some thousand of the
/// usual size. Beyond that the oldest are dropped: each says only that something changed.
const ARRIVED_BYTES_MAX: usize = 256 * 1024;

impl Pending {
    pub(crate) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                handle: None,
                // What a subscription sends.
                method: MethodName::Known(Method::SubscriptionsListen),
                options: CallOptions::default(),
                fields: HeaderFields::new(),
                cache_mode: CacheMode::Default,
                on_progress: None,
                outcome: None,
                text: String::new(),
                ended: false,
                unclaimed_task: None,
                abandoned: false,
                accepted: false,
                called_as: None,
                honoured: None,
                renewal: None,
                arrived: VecDeque::new(),
                arrived_bytes: 0,
                waker: None,
            }),
        }
    }

    /// Sets the method of a call.
    pub(crate) fn with_method(mut self, method: Method) -> Self {
        self.inner.get_mut().method = MethodName::Known(method);
        self
    }

    /// Sets the header fields.
    pub(crate) fn with_fields(mut self, fields: HeaderFields) -> Self {
        self.inner.get_mut().fields = fields;
        self
    }

    /// Resets the state for a new call. Keeps the text buffer.
    fn clear(&mut self) {
        let mut text = core::mem::take(&mut self.inner.get_mut().text);
        *self = Self::new();
        if text.capacity() <= POOL_TEXT_MAX {
            text.clear();
            self.inner.get_mut().text = text;
        }
    }

    /// Writes the parameters of the call.
    pub(crate) fn write(&self, params: &dyn WriteJson) -> Result<(), WriteError> {
        let mut text = self.inner.lock(|inner| core::mem::take(&mut inner.text));
        // Outside of the lock: the serialization may run any code.
        params.write_json(&mut text)?;
        self.give_back(text);
        Ok(())
    }

    /// Returns the method, the options and the parameters for sending the call; `None` if the
    /// caller dropped it. Return the parameters with [`give_back`](Self::give_back).
    pub(crate) fn begin(&self) -> Option<(MethodName<'static>, CallOptions<'static>, String)> {
        self.inner.lock(|inner| {
            // Under one lock, so that a caller that drops the call either is seen here or tells the
            // driver.
            inner.accepted = !inner.abandoned;
            inner.accepted.then(|| {
                let text = core::mem::take(&mut inner.text);
                (inner.method.clone(), inner.options.clone(), text)
            })
        })
    }

    /// Takes the parameters of a call that was not sent.
    fn take_text(&self) -> String {
        self.inner.lock(|inner| core::mem::take(&mut inner.text))
    }

    /// Returns the header fields of a subscription, which may be renewed, or of a task.
    pub(crate) fn fields(&self) -> HeaderFields {
        self.inner.lock(|inner| inner.fields.clone())
    }

    /// Takes the header fields of the call, or copies them if the requests about its task need them
    /// as well.
    pub(crate) fn fields_to_send(&self, follows_tasks: bool) -> HeaderFields {
        self.inner.lock(|inner| {
            if follows_tasks || inner.options.wants_task() {
                inner.fields.clone()
            } else {
                core::mem::take(&mut inner.fields)
            }
        })
    }

    pub(crate) fn cache_mode(&self) -> CacheMode {
        self.inner.lock(|inner| inner.cache_mode)
    }

    /// Like [`begin`](Self::begin), for a pending state without parameters.
    pub(crate) fn accept(&self) -> bool {
        self.inner.lock(|inner| {
            inner.accepted = !inner.abandoned;
            inner.accepted
        })
    }

    /// Returns the buffer of a text that was taken.
    pub(crate) fn give_back(&self, text: String) {
        let old = self.inner.lock(|inner| core::mem::replace(&mut inner.text, text));
        drop(old);
    }

    pub(crate) fn set_handle(&self, handle: CallHandle) {
        self.inner.lock(|inner| inner.handle = Some(handle));
    }

    pub(crate) fn handle(&self) -> Option<CallHandle> {
        self.inner.lock(|inner| inner.handle)
    }

    /// Calls the progress callback. If it panics it is not called again; the call stays pending.
    pub(crate) fn progress(&self, progress: &Progress<'_>, guard: PanicGuard) {
        // The callback runs outside of the lock: it may make calls.
        let callback = self.inner.lock(|inner| inner.on_progress.take());
        let Some(mut callback) = callback else { return };
        if guard.run(|| callback(progress)).is_ok() {
            self.inner.lock(|inner| inner.on_progress = Some(callback));
        } else {
            guard.drop(callback);
        }
    }

    pub(crate) fn subscribed(&self, honoured: SubscriptionFilter, now: Instant) {
        self.change(|inner| {
            inner.honoured = Some(honoured);
            if let Some(renewal) = &mut inner.renewal {
                (renewal.since, renewal.is_renewed) = (Some(now), false);
            }
        });
    }

    /// Returns whether the server has acknowledged the subscription.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.inner.lock(|inner| inner.honoured.is_some())
    }

    /// Enables the renewal of the subscription when its server ends it.
    pub(crate) fn renew_with(&self, filter: SubscriptionFilter) {
        let renewal = Renewal { filter, since: None, is_renewed: false };
        self.inner.lock(|inner| inner.renewal = Some(Box::new(renewal)));
    }

    /// Called when the server has ended the subscription; returns the filter for its renewal, if it
    /// is renewed.
    pub(crate) fn renewal(&self, now: Instant) -> Option<SubscriptionFilter> {
        self.inner.lock(|inner| {
            if inner.abandoned {
                return None;
            }
            let renewal = inner.renewal.as_deref_mut()?;
            let since = renewal.since.take()?;
            renewal.is_renewed = true;
            (now.saturating_since(since) >= RENEWAL_AFTER).then(|| renewal.filter.clone())
        })
    }

    /// Whether the subscription is being renewed and is not acknowledged yet.
    pub(crate) fn is_being_renewed(&self) -> bool {
        self.inner.lock(|inner| inner.renewal.as_ref().is_some_and(|renewal| renewal.is_renewed))
    }

    pub(crate) fn arrive(&self, notification: Notification<'static>) {
        self.change(|inner| {
            inner.arrived_bytes += weight(&notification);
            inner.arrived.push_back(notification);
            while inner.arrived_bytes > ARRIVED_BYTES_MAX && inner.arrived.len() > 1 {
                inner.next_arrived();
            }
        });
    }

    pub(crate) fn end(&self, outcome: Result<RawJson<'_>, ClientError>) {
        let callback = self.change(|inner| {
            // The progress of a task continues.
            let lasts = inner.options.wants_task() && outcome.is_ok();
            if !inner.ended {
                inner.ended = true;
                if let (true, Ok(created)) = (lasts, &outcome) {
                    inner.unclaimed_task = task_id(created.get("task").as_ref());
                }
                inner.outcome = Some(outcome.map(|result| {
                    inner.text.clear();
                    inner.text.push_str(result.as_str());
                }));
            }
            if lasts { None } else { inner.on_progress.take() }
        });
        // The callback may hold a handle, so it is dropped outside of the lock.
        drop(callback);
    }

    /// Returns the error of a call that was not answered in time. `defaults` apply to a call
    /// without timeouts of its own.
    #[cold]
    pub(crate) fn timeout_error(&self, hard: bool, defaults: &Timeouts) -> ClientError {
        self.inner.lock(|inner| {
            let options = &inner.options;
            let after = match hard {
                true => options.timeout_hard.unwrap_or(defaults.call_hard),
                false => options.timeout.unwrap_or(defaults.call),
            };
            let subject = inner.method.known().and_then(Method::subject);
            let params = RawJson::trusted(&inner.text);
            let target = subject.and_then(|subject| Some(subject.find(&params)?.1.into()));
            ClientError::TimedOut { method: inner.method.clone(), target, after, hard }
        })
    }

    /// Adds the name that the application called to the error of the call.
    #[cold]
    fn named(&self, error: ClientError) -> ClientError {
        match self.inner.lock(|inner| inner.called_as.take()) {
            Some(called) => {
                let (server, name) = *called;
                ClientError::OfServer { server, name, error: Box::new(error) }
            }
            None => error,
        }
    }

    pub(crate) fn wants_task(&self) -> bool {
        self.inner.lock(|inner| inner.options.wants_task())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.inner.lock(|inner| inner.ended)
    }

    /// Whether the call has created a task to which the application has no handle yet.
    pub(crate) fn has_unclaimed_task(&self) -> bool {
        self.inner.lock(|inner| inner.unclaimed_task.is_some())
    }

    /// Records that the application has a handle to the task, so the end of the call does not
    /// cancel it.
    pub(crate) fn claim_task(&self) {
        let claimed = self.inner.lock(|inner| inner.unclaimed_task.take());
        drop(claimed);
    }

    /// Takes the id, as JSON text, of a task that the call has created and that has no user, if
    /// there is one. `follows_tasks` says whether the result may be a task of the extension.
    pub(crate) fn take_unclaimed_task(&self, follows_tasks: bool) -> Option<Box<str>> {
        self.inner.lock(|inner| {
            if let Some(id) = inner.unclaimed_task.take() {
                return Some(id);
            }
            if !follows_tasks || !matches!(inner.outcome, Some(Ok(()))) {
                return None;
            }
            inner.outcome = None;
            let result = RawJson::trusted(&inner.text);
            let is_task = result.get("resultType").is_some_and(|it| it.as_str() == r#""task""#);
            if is_task { task_id(Some(&result)) } else { None }
        })
    }

    /// Drops the progress callback.
    pub(crate) fn forget_progress(&self) {
        let callback = self.inner.lock(|inner| inner.on_progress.take());
        drop(callback);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.inner.lock(|inner| inner.abandoned)
    }

    /// Records that the caller dropped the call. The driver must be told if it has accepted the
    /// call, unless the call has ended; then it may be reused. A result that was not read may be a
    /// task, which the driver cancels. `follows_tasks` says whether any result may be one.
    fn abandon(&self, follows_tasks: bool) -> Abandoned {
        self.inner.lock(|inner| {
            inner.abandoned = true;
            let may_be_task = follows_tasks || inner.unclaimed_task.is_some();
            let is_unread = may_be_task && matches!(inner.outcome, Some(Ok(())));
            match (inner.ended && !is_unread, inner.accepted) {
                (true, _) => Abandoned::Ended,
                (false, true) => Abandoned::UnderWay,
                // The driver will find it abandoned.
                (false, false) => Abandoned::Waiting,
            }
        })
    }

    /// Changes the state and wakes the waiting task, outside of the lock.
    fn change<R>(&self, change: impl FnOnce(&mut Inner) -> R) -> R {
        let (changed, waker) = self.inner.lock(|inner| (change(inner), inner.waker.take()));
        if let Some(waker) = waker {
            waker.wake();
        }
        changed
    }

    /// Looks for a value, and stores the waker if it is not available yet.
    fn poll<T>(&self, cx: &Context<'_>, find: impl FnOnce(&mut Inner) -> Option<T>) -> Poll<T> {
        // Wakers are cloned and dropped outside of the lock, because they run foreign code.
        let mut waker = Some(cx.waker().clone());
        let polled = self.inner.lock(|inner| match find(inner) {
            Some(found) => Poll::Ready(found),
            None => {
                core::mem::swap(&mut inner.waker, &mut waker);
                Poll::Pending
            }
        });
        drop(waker);
        polled
    }
}

/// The state of a call when its caller dropped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abandoned {
    Waiting,
    UnderWay,
    Ended,
}

impl Inner {
    fn next_arrived(&mut self) -> Option<Notification<'static>> {
        let notification = self.arrived.pop_front()?;
        self.arrived_bytes -= weight(&notification);
        Some(notification)
    }
}

/// Returns the id of a task, as JSON text.
fn task_id(task: Option<&RawJson<'_>>) -> Option<Box<str>> {
    Some(task?.get("taskId")?.as_str().into())
}

/// Returns the size of a queued notification.
fn weight(notification: &Notification<'_>) -> usize {
    size_of::<Notification<'_>>() + notification.params.as_str().len()
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("handle", &self.handle()).finish_non_exhaustive()
    }
}

/// An open subscription. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    pending: Arc<Pending>,
}

impl Subscription {
    pub(crate) fn new(client: Client, filter: SubscriptionFilter) -> Self {
        Self::start(client, filter, Arc::new(Pending::new()))
    }

    pub(crate) fn with_fields(
        client: Client,
        filter: SubscriptionFilter,
        fields: HeaderFields,
    ) -> Self {
        Self::start(client, filter, Arc::new(Pending::new().with_fields(fields)))
    }

    fn start(client: Client, filter: SubscriptionFilter, pending: Arc<Pending>) -> Self {
        client.send(Command::Subscribe { pending: Arc::clone(&pending), filter });
        Self { client, pending }
    }

    /// Waits until the server has acknowledged the subscription; returns the part of the filter
    /// that the server honours.
    ///
    /// # Errors
    ///
    /// The subscription ended before it was acknowledged, or could not be opened.
    pub async fn honoured(&mut self) -> Result<SubscriptionFilter, ClientError> {
        core::future::poll_fn(|cx| {
            self.pending.poll(cx, |inner| match (&inner.honoured, inner.ended) {
                // `next` returns how it ended.
                (Some(honoured), _) => Some(Ok(honoured.clone())),
                (None, false) => None,
                (None, true) => Some(match inner.outcome.take() {
                    Some(Ok(())) => Ok(SubscriptionFilter::default()),
                    Some(Err(error)) => Err(error),
                    // It was returned before.
                    None => Err(ClientError::Failed(Failure::Cancelled)),
                }),
            })
        })
        .await
    }

    /// Waits for the next notification; `None` once the server has ended the subscription.
    ///
    /// # Errors
    ///
    /// The subscription or its connection failed; at a legacy server over HTTP also if the session has
    /// no event stream, or lost it.
    pub async fn next(&mut self) -> Result<Option<Notification<'static>>, ClientError> {
        core::future::poll_fn(|cx| {
            self.pending.poll(cx, |inner| match (inner.next_arrived(), inner.ended) {
                (Some(notification), _) => Some(Ok(Some(notification))),
                (None, false) => None,
                (None, true) => Some(match inner.outcome.take() {
                    Some(Err(error)) => Err(error),
                    Some(Ok(())) | None => Ok(None),
                }),
            })
        })
        .await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.pending.abandon(false) == Abandoned::UnderWay {
            let pending = Arc::clone(&self.pending);
            self.client.send(Command::Cancel { pending, reason: "no longer interested" });
        }
    }
}

// ------------------------------------------------------------------ calls of the application

/// A call before it is sent: set its options, then await it. Dropping the future cancels the call.
#[must_use = "a call is made when it is awaited"]
pub struct ClientCall<T> {
    client: Client,
    method: MethodName<'static>,
    pending: Arc<Pending>,
    /// Whether the parameters were serialized.
    written: Result<(), ClientError>,
    options: CallOptions<'static>,
    fields: HeaderFields,
    cache_mode: CacheMode,
    on_progress: Option<OnProgress>,
    result: PhantomData<fn() -> T>,
}

impl<T> ClientCall<T> {
    pub(crate) fn new(client: Client, method: MethodName<'static>, params: &dyn WriteJson) -> Self {
        let pending = client.call_pool().take();
        let written = pending.write(params).map_err(ClientError::from);
        Self::with(client, method, pending, written)
    }

    /// Returns a call that fails with `why` without being sent.
    pub(crate) fn not_sent(client: Client, method: MethodName<'static>, why: ClientError) -> Self {
        let pending = client.call_pool().take();
        Self::with(client, method, pending, Err(why))
    }

    fn with(
        client: Client,
        method: MethodName<'static>,
        pending: Arc<Pending>,
        written: Result<(), ClientError>,
    ) -> Self {
        Self {
            client,
            method,
            pending,
            written,
            options: CallOptions::default(),
            fields: HeaderFields::new(),
            cache_mode: CacheMode::Default,
            on_progress: None,
            result: PhantomData,
        }
    }

    /// Sets how long to wait for an answer or for progress.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options = self.options.timeout(timeout);
        self
    }

    /// Sets how long to wait in total.
    pub fn timeout_hard(mut self, timeout: Duration) -> Self {
        self.options = self.options.timeout_hard(timeout);
        self
    }

    /// Requests progress and passes it to `callback`, which must return quickly.
    pub fn on_progress(mut self, callback: impl FnMut(&Progress<'_>) + Send + 'static) -> Self {
        self.options = self.options.progress();
        self.on_progress = Some(Box::new(callback));
        self
    }

    /// Requests log messages of `level` and above for this call, at revisions that allow it per
    /// request.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// servers log to standard error, or with OpenTelemetry.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.options = self.options.log_level(level);
        self
    }

    /// Adds members to `_meta`.
    pub fn meta(mut self, meta: RawJson<'_>) -> Self {
        self.options = self.options.meta(meta.into_owned());
        self
    }

    /// Adds a header field to the HTTP requests of this call, those of its input rounds included:
    /// the name of a tenant, a token of the user for whom it is made. It replaces a field
    /// with the same name that is set for the connection
    /// ([`HttpClientOptions::header`](mcp_sansio::http::HttpClientOptions::header)). It is sent to
    /// no other origin, and neither logs nor recordings contain its value.
    ///
    /// The call fails without being sent if the field is not allowed
    /// ([`ClientError::InvalidHeader`]), or if the connection is a byte stream
    /// ([`CommandError::NoHeaderFields`](mcp_sansio::peer::CommandError::NoHeaderFields)).
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Err(invalid) = self.fields.insert(name, value)
            && self.written.is_ok()
        {
            self.written = Err(invalid.into());
        }
        self
    }

    /// Sets all header fields, or the reason why one is not allowed.
    pub(crate) fn header_fields(mut self, fields: Result<HeaderFields, InvalidHeader>) -> Self {
        match fields {
            Ok(fields) => self.fields = fields,
            Err(invalid) if self.written.is_ok() => self.written = Err(invalid.into()),
            Err(_) => {}
        }
        self
    }

    /// Requests the result from the server even if the [cache of the host](crate::Host::cache) has
    /// a fresh one, and replaces that. Without a cache it has no effect.
    ///
    /// Use it when there is reason to believe that the data changed, for example because a call of
    /// a listed tool failed with "not found".
    // MCP 2026-07-28 server/utilities/caching#freshness-calculation [CACHE-008]
    pub fn reload(self) -> Self {
        self.cache_mode(CacheMode::Reload)
    }

    pub(crate) fn cache_mode(mut self, mode: CacheMode) -> Self {
        self.cache_mode = mode;
        self
    }

    /// Makes the call a task.
    pub(crate) fn run_as_task(mut self, ttl: Option<Duration>) -> Self {
        self.options = self.options.task(ttl);
        self
    }

    /// Names the call in its error.
    pub(super) fn called_as(self, server: Arc<str>, name: &str) -> Self {
        let called = Box::new((server, Box::from(name)));
        self.pending.inner.lock(|inner| inner.called_as = Some(called));
        self
    }

    /// Returns the same call with another result type.
    pub(crate) fn for_task<R>(self) -> ClientCall<R> {
        ClientCall {
            client: self.client,
            method: self.method,
            pending: self.pending,
            written: self.written,
            options: self.options,
            fields: self.fields,
            cache_mode: self.cache_mode,
            on_progress: self.on_progress,
            result: PhantomData,
        }
    }
}

mcp_sansio::partial_debug! { impl<T> Debug for ClientCall<T> { method, .. } }

impl<T: DeserializeOwned> IntoFuture for ClientCall<T> {
    type Output = Result<T, ClientError>;
    type IntoFuture = CallFuture<T>;

    #[inline]
    fn into_future(self) -> CallFuture<T> {
        let has_layers = self.client.layers().is_some();
        // A lookup in the cache sends nothing.
        if has_layers && self.written.is_ok() && self.cache_mode != CacheMode::OnlyIfCached {
            return self.run_layers();
        }
        self.send()
    }
}

impl<T> ClientCall<T> {
    /// Creates the call that a request describes, which the middleware may have changed.
    pub(crate) fn from_request(request: ClientRequest, on_progress: Option<OnProgress>) -> Self {
        let mut call = Self::new(request.client, request.method, &request.params);
        call.options = request.options;
        call.fields = request.fields;
        (call.cache_mode, call.on_progress) = (request.cache_mode, on_progress);
        call
    }

    /// Starts the call with the middleware of the host around it.
    // Not inlined, so that `send` is, and the call is not moved.
    #[inline(never)]
    fn run_layers(self) -> CallFuture<T> {
        let params = RawJson::trusted_string(self.pending.take_text());
        let request = ClientRequest {
            client: self.client.clone(),
            method: self.method,
            params,
            options: self.options,
            fields: self.fields,
            cache_mode: self.cache_mode,
        };
        let mut call = CallFuture::new(self.client, self.pending);
        call.layered = Some(LayeredCall::new(request, self.on_progress));
        call
    }

    /// Sends the call.
    #[inline]
    pub(crate) fn send(self) -> CallFuture<T> {
        let Self { client, method, pending, written, options, cache_mode, on_progress, .. } = self;
        // Here, because the driver runs in another context.
        let options = match &client.shared().observer {
            Some(observer) => options.context(observer.call_context()),
            None => options,
        };
        // Replaces only initial values, so nothing is dropped under the lock.
        pending.inner.lock(|inner| {
            (inner.method, inner.options, inner.on_progress) = (method, options, on_progress);
            inner.cache_mode = cache_mode;
            inner.fields = self.fields;
        });
        match written {
            Ok(()) => {
                client.send(Command::Call { pending: Arc::clone(&pending), is_cleanup: false })
            }
            Err(error) => pending.end(Err(error)),
        }
        CallFuture::new(client, pending)
    }
}

/// Resolves to the result of a call. Dropping it earlier cancels the call.
#[must_use = "await it"]
#[derive(Debug)]
pub struct CallFuture<T> {
    client: Client,
    pending: Arc<Pending>,
    /// Set if the host has middleware, which then sends the call.
    layered: Option<LayeredCall>,
    /// The task that the call has become.
    followed: Option<FollowedTask>,
    result: PhantomData<fn() -> T>,
}

impl<T> CallFuture<T> {
    pub(crate) const fn new(client: Client, pending: Arc<Pending>) -> Self {
        Self { client, pending, layered: None, followed: None, result: PhantomData }
    }

    pub(crate) fn pending(&self) -> Arc<Pending> {
        let sent = self.layered.as_ref().and_then(LayeredCall::task);
        sent.unwrap_or_else(|| Arc::clone(&self.pending))
    }
}

impl<T: DeserializeOwned> Future for CallFuture<T> {
    type Output = Result<T, ClientError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.poll_result(cx));
        Poll::Ready(result.map_err(|error| self.pending.named(error)))
    }
}

impl<T: DeserializeOwned> CallFuture<T> {
    #[inline]
    fn poll_result(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, ClientError>> {
        if let Some(layered) = &mut self.layered {
            let result = ready!(layered.future.as_mut().poll(cx));
            return Poll::Ready(result.and_then(|result| self.client.decode(&result.as_raw())));
        }
        loop {
            if let Some(followed) = &mut self.followed {
                let result = ready!(followed.poll(cx));
                self.followed = None;
                return Poll::Ready(result.and_then(|result| self.client.decode(&result.as_raw())));
            }
            let text = ready!(self.pending.poll(cx, |inner| {
                let outcome = inner.outcome.take()?;
                Some(outcome.map(|()| core::mem::take(&mut inner.text)))
            }))?;
            let result = RawJson::trusted(&text);
            if self.client.shared().follows_tasks {
                let fields = &self.pending.fields();
                self.followed = FollowedTask::from_result(&self.client, &result, fields);
            }
            let decoded = self.followed.is_none().then(|| self.client.decode(&result));
            self.pending.give_back(text);
            if let Some(decoded) = decoded {
                return Poll::Ready(decoded);
            }
        }
    }
}

impl<T> Drop for CallFuture<T> {
    fn drop(&mut self) {
        match self.pending.abandon(self.client.shared().follows_tasks) {
            Abandoned::Waiting => {}
            Abandoned::UnderWay => {
                let pending = Arc::clone(&self.pending);
                self.client.send(Command::Cancel { pending, reason: "the caller went away" });
            }
            Abandoned::Ended => self.client.call_pool().put(&mut self.pending),
        }
    }
}

/// Says which call got no answer in which time, and what to do for a slower server.
pub(super) struct TimeoutText<'e>(
    pub(super) &'e MethodName<'static>,
    pub(super) Option<&'e str>,
    pub(super) Duration,
    pub(super) bool,
);

impl fmt::Display for TimeoutText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(method, target, after, hard) = self;
        write!(f, "`{method}`")?;
        if let Some(target) = target {
            write!(f, " of {target:?}")?;
        }
        match hard {
            true => write!(f, " got no answer within {after:?} in total; raise its `timeout_hard`"),
            false => write!(f, " got no answer or progress within {after:?}; raise its `timeout`"),
        }
    }
}

// ------------------------------------------------------------------ reuse of allocations

/// Ended calls for reuse, so that a later call allocates no state.
#[derive(Debug, Default)]
pub(crate) struct CallPool {
    calls: Mutex<Vec<Arc<Pending>>>,
}

/// How many calls are kept: rarely do more end before the next ones begin.
const POOL_MAX: usize = 8;

/// The most text capacity that a kept call retains, in bytes: enough for most calls.
const POOL_TEXT_MAX: usize = 16 * 1024;

impl CallPool {
    /// Takes a call without other references.
    fn take(&self) -> Arc<Pending> {
        let spare = self.calls.lock(Vec::pop);
        // The thread that put it there may still hold a reference.
        match spare.filter(|spare| Arc::strong_count(spare) == 1) {
            Some(spare) => spare,
            None => Arc::new(Pending::new()),
        }
    }

    /// Keeps a call if it has no other references.
    fn put(&self, call: &mut Arc<Pending>) {
        let Some(pending) = Arc::get_mut(call) else { return };
        pending.clear();
        let kept = Arc::clone(call);
        let left = self.calls.lock(|calls| {
            if calls.len() < POOL_MAX {
                calls.push(kept);
                return None;
            }
            Some(kept)
        });
        drop(left);
    }
}

#[cfg(test)]
mod call_pool_tests {
    use alloc::string::String;

    use mcp_sansio::jsonrpc::RawJson;

    use super::*;

    #[test]
    fn an_ended_call_is_reset_before_reuse() {
        let pool = CallPool::default();
        let mut first = pool.take();
        first.write(&RawJson::trusted(r#"{"a":1}"#)).unwrap();
        assert_eq!(first.begin().unwrap().2, r#"{"a":1}"#);
        first.end(Ok(RawJson::EMPTY_OBJECT));
        let address = Arc::as_ptr(&first);
        pool.put(&mut first);
        drop(first);
        let second = pool.take();
        assert_eq!(Arc::as_ptr(&second), address);
        assert_eq!(second.begin().unwrap().2, "");
        assert_eq!(second.abandon(false), Abandoned::UnderWay, "it has not ended");
    }

    #[test]
    fn a_call_with_other_references_is_not_pooled() {
        let pool = CallPool::default();
        let (mut first, second) = (pool.take(), pool.take());
        let held = Arc::clone(&first);
        pool.put(&mut first);
        assert!(pool.calls.lock(|calls| calls.is_empty()));
        drop(held);
        pool.put(&mut first);
        let third = pool.take();
        assert!(!Arc::ptr_eq(&first, &third) && !Arc::ptr_eq(&second, &third));
    }

    #[test]
    fn the_memory_of_a_long_text_is_not_kept() {
        let pool = CallPool::default();
        let mut call = pool.take();
        call.give_back(String::with_capacity(POOL_TEXT_MAX + 1));
        pool.put(&mut call);
        assert_eq!(call.begin().unwrap().2.capacity(), 0);
    }
}
