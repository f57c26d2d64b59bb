//! Pending calls and open subscriptions of a client.

mod call_pool;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::{RawJson, WriteError, WriteJson};
use mcp_sansio::peer::{CallHandle, CallOptions, MethodName, Notification, Progress};
use mcp_sansio::protocol::{LoggingLevel, SubscriptionFilter};
use mcp_sansio_sync::Mutex;
use serde::de::DeserializeOwned;

use super::client::{Client, ClientError, Command};
use super::followed_task::FollowedTask;
use super::panics::PanicGuard;
use super::response_cache::CacheMode;

pub(super) use call_pool::CallPool;
use call_pool::POOL_TEXT_MAX;

/// The state of a call, shared by its caller and the driver.
pub(super) struct Pending {
    inner: Mutex<Inner>,
}

struct Inner {
    handle: Option<CallHandle>,
    options: CallOptions<'static>,
    cache_mode: CacheMode,
    on_progress: Option<OnProgress>,
    outcome: Option<Result<(), ClientError>>,
    /// The parameters until the call is sent; the result once it has ended.
    text: String,
    /// Whether the call has an outcome, taken or not.
    ended: bool,
    /// Whether the caller dropped the call: if it was not sent yet, it is not sent.
    abandoned: bool,
    /// Whether the driver has accepted the call, and must be told when the caller drops it.
    accepted: bool,
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

type OnProgress = Box<dyn FnMut(&Progress<'_>) + Send>;

/// The most bytes of notifications that a subscription queues for its reader: some thousand of the
/// usual size. Beyond that the oldest are dropped: each says only that something changed.
const ARRIVED_BYTES_MAX: usize = 256 * 1024;

impl Pending {
    pub(super) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                handle: None,
                options: CallOptions::default(),
                cache_mode: CacheMode::Default,
                on_progress: None,
                outcome: None,
                text: String::new(),
                ended: false,
                abandoned: false,
                accepted: false,
                honoured: None,
                renewal: None,
                arrived: VecDeque::new(),
                arrived_bytes: 0,
                waker: None,
            }),
        }
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
    pub(super) fn write(&self, params: &dyn WriteJson) -> Result<(), WriteError> {
        let mut text = self.inner.lock(|inner| core::mem::take(&mut inner.text));
        // Outside of the lock: the serialisation may run any code.
        params.write_json(&mut text)?;
        self.give_back(text);
        Ok(())
    }

    /// Returns the options and parameters for sending the call; `None` if the caller dropped it.
    /// Return the parameters with [`give_back`](Self::give_back).
    pub(super) fn begin(&self) -> Option<(CallOptions<'static>, String)> {
        self.inner.lock(|inner| {
            // Under one lock, so that a caller that drops the call either is seen here or tells the
            // driver.
            inner.accepted = !inner.abandoned;
            inner.accepted.then(|| (inner.options.clone(), core::mem::take(&mut inner.text)))
        })
    }

    pub(super) fn cache_mode(&self) -> CacheMode {
        self.inner.lock(|inner| inner.cache_mode)
    }

    /// Like [`begin`](Self::begin), for a pending state without parameters.
    pub(super) fn accept(&self) -> bool {
        self.inner.lock(|inner| {
            inner.accepted = !inner.abandoned;
            inner.accepted
        })
    }

    /// Returns the buffer of a text that was taken.
    pub(super) fn give_back(&self, text: String) {
        let old = self.inner.lock(|inner| core::mem::replace(&mut inner.text, text));
        drop(old);
    }

    pub(super) fn set_handle(&self, handle: CallHandle) {
        self.inner.lock(|inner| inner.handle = Some(handle));
    }

    pub(super) fn handle(&self) -> Option<CallHandle> {
        self.inner.lock(|inner| inner.handle)
    }

    /// Calls the progress callback. If it panics it is not called again; the call stays pending.
    pub(super) fn progress(&self, progress: &Progress<'_>, guard: PanicGuard) {
        // The callback runs outside of the lock: it may make calls.
        let callback = self.inner.lock(|inner| inner.on_progress.take());
        let Some(mut callback) = callback else { return };
        if guard.run(|| callback(progress)).is_ok() {
            self.inner.lock(|inner| inner.on_progress = Some(callback));
        } else {
            guard.drop(callback);
        }
    }

    pub(super) fn subscribed(&self, honoured: SubscriptionFilter, now: Instant) {
        self.change(|inner| {
            inner.honoured = Some(honoured);
            if let Some(renewal) = &mut inner.renewal {
                (renewal.since, renewal.is_renewed) = (Some(now), false);
            }
        });
    }

    /// Enables the renewal of the subscription when its server ends it.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "tokens exist only on HTTP"))]
    pub(super) fn renew_with(&self, filter: SubscriptionFilter) {
        let renewal = Renewal { filter, since: None, is_renewed: false };
        self.inner.lock(|inner| inner.renewal = Some(Box::new(renewal)));
    }

    /// Called when the server has ended the subscription; returns the filter for its renewal, if it
    /// is renewed.
    pub(super) fn renewal(&self, now: Instant) -> Option<SubscriptionFilter> {
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
    pub(super) fn is_being_renewed(&self) -> bool {
        self.inner.lock(|inner| inner.renewal.as_ref().is_some_and(|renewal| renewal.is_renewed))
    }

    pub(super) fn arrive(&self, notification: Notification<'static>) {
        self.change(|inner| {
            inner.arrived_bytes += weight(&notification);
            inner.arrived.push_back(notification);
            while inner.arrived_bytes > ARRIVED_BYTES_MAX && inner.arrived.len() > 1 {
                inner.next_arrived();
            }
        });
    }

    pub(super) fn end(&self, outcome: Result<RawJson<'_>, ClientError>) {
        let callback = self.change(|inner| {
            // The progress of a task continues.
            let lasts = inner.options.wants_task() && outcome.is_ok();
            if !inner.ended {
                inner.ended = true;
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

    pub(super) fn wants_task(&self) -> bool {
        self.inner.lock(|inner| inner.options.wants_task())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.inner.lock(|inner| inner.ended)
    }

    /// Drops the progress callback.
    pub(super) fn forget_progress(&self) {
        let callback = self.inner.lock(|inner| inner.on_progress.take());
        drop(callback);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.inner.lock(|inner| inner.abandoned)
    }

    /// Records that the caller dropped the call. The driver must be told if it has accepted the
    /// call; a call that has ended may be reused.
    fn abandon(&self) -> Abandoned {
        self.inner.lock(|inner| {
            inner.abandoned = true;
            match (inner.ended, inner.accepted) {
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

/// Returns the size of a queued notification.
fn weight(notification: &Notification<'_>) -> usize {
    size_of::<Notification<'_>>() + notification.params.as_str().len()
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("handle", &self.handle()).finish_non_exhaustive()
    }
}

/// A call before it is sent: set its options, then await it. Dropping the future cancels the call.
#[must_use = "a call is made when it is awaited"]
pub struct ClientCall<T> {
    client: Client,
    method: MethodName<'static>,
    pending: Arc<Pending>,
    /// Whether the parameters were serialised.
    written: Result<(), ClientError>,
    options: CallOptions<'static>,
    cache_mode: CacheMode,
    on_progress: Option<OnProgress>,
    result: PhantomData<fn() -> T>,
}

impl<T> ClientCall<T> {
    pub(super) fn new(client: Client, method: MethodName<'static>, params: &dyn WriteJson) -> Self {
        let pending = client.call_pool().take();
        let written = pending.write(params).map_err(ClientError::from);
        Self::with(client, method, pending, written)
    }

    /// Returns a call that fails with `why` without being sent.
    pub(super) fn not_sent(client: Client, method: MethodName<'static>, why: ClientError) -> Self {
        let pending = client.call_pool().take();
        Self::with(client, method, pending, Err(why))
    }

    fn with(
        client: Client,
        method: MethodName<'static>,
        pending: Arc<Pending>,
        written: Result<(), ClientError>,
    ) -> Self {
        let (options, cache_mode) = (CallOptions::default(), CacheMode::Default);
        let (on_progress, result) = (None, PhantomData);
        Self { client, method, pending, written, options, cache_mode, on_progress, result }
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
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.options = self.options.log_level(level);
        self
    }

    /// Adds members to `_meta`.
    pub fn meta(mut self, meta: RawJson<'_>) -> Self {
        self.options = self.options.meta(meta.into_owned());
        self
    }

    /// Requests the result from the server even if the [cache of the host](super::Host::cache) has
    /// a fresh one, and replaces that. Without a cache it has no effect.
    ///
    /// Use it when there is reason to believe that the data changed, for example because a call of
    /// a listed tool failed with "not found".
    // MCP 2026-07-28 server/utilities/caching#freshness-calculation [CACHE-008]
    pub fn reload(self) -> Self {
        self.cache_mode(CacheMode::Reload)
    }

    pub(super) fn cache_mode(mut self, mode: CacheMode) -> Self {
        self.cache_mode = mode;
        self
    }

    /// Makes the call a task.
    pub(super) fn run_as_task(mut self, ttl: Option<Duration>) -> Self {
        self.options = self.options.task(ttl);
        self
    }

    /// Returns the same call with another result type.
    pub(super) fn for_task<R>(self) -> ClientCall<R> {
        let Self { client, method, pending, written, options, cache_mode, on_progress, .. } = self;
        let result = PhantomData;
        ClientCall { client, method, pending, written, options, cache_mode, on_progress, result }
    }
}

impl<T> fmt::Debug for ClientCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCall").field("method", &self.method).finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned> IntoFuture for ClientCall<T> {
    type Output = Result<T, ClientError>;
    type IntoFuture = CallFuture<T>;

    fn into_future(self) -> CallFuture<T> {
        let Self { client, method, pending, written, options, cache_mode, on_progress, .. } = self;
        // Replaces only initial values, so nothing is dropped under the lock.
        pending.inner.lock(|inner| {
            (inner.options, inner.on_progress) = (options, on_progress);
            inner.cache_mode = cache_mode;
        });
        match written {
            Ok(()) => client.send(Command::Call { pending: Arc::clone(&pending), method }),
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
    /// The task that the call has become.
    followed: Option<FollowedTask>,
    result: PhantomData<fn() -> T>,
}

impl<T> CallFuture<T> {
    pub(super) const fn new(client: Client, pending: Arc<Pending>) -> Self {
        Self { client, pending, followed: None, result: PhantomData }
    }

    pub(super) fn pending(&self) -> Arc<Pending> {
        Arc::clone(&self.pending)
    }
}

impl<T: DeserializeOwned> Future for CallFuture<T> {
    type Output = Result<T, ClientError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let Some(followed) = &mut self.followed {
                let result = ready!(followed.poll(cx));
                self.followed = None;
                return Poll::Ready(Ok(result?.decode()?));
            }
            let outcome = ready!(self.pending.poll(cx, |inner| {
                let outcome = inner.outcome.take()?;
                Some(outcome.map(|()| core::mem::take(&mut inner.text)))
            }));
            let text = outcome?;
            let result = RawJson::trusted(&text);
            if self.client.shared().follows_tasks {
                self.followed = FollowedTask::from_result(&self.client, &result);
            }
            let decoded = self.followed.is_none().then(|| result.decode());
            self.pending.give_back(text);
            if let Some(decoded) = decoded {
                return Poll::Ready(Ok(decoded?));
            }
        }
    }
}

impl<T> Drop for CallFuture<T> {
    fn drop(&mut self) {
        match self.pending.abandon() {
            Abandoned::Waiting => {}
            Abandoned::UnderWay => {
                let pending = Arc::clone(&self.pending);
                self.client.send(Command::Cancel { pending, reason: "the caller went away" });
            }
            Abandoned::Ended => self.client.call_pool().put(&mut self.pending),
        }
    }
}

/// An open subscription. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    pending: Arc<Pending>,
}

impl Subscription {
    pub(super) fn new(client: Client, filter: SubscriptionFilter) -> Self {
        let pending = Arc::new(Pending::new());
        client.send(Command::Subscribe { pending: Arc::clone(&pending), filter });
        Self { client, pending }
    }

    /// Waits until the server has acknowledged the subscription; returns the part of the filter
    /// that the server honours.
    ///
    /// # Errors
    ///
    /// The subscription ended, or could not be opened.
    pub async fn honoured(&mut self) -> Result<SubscriptionFilter, ClientError> {
        core::future::poll_fn(|cx| {
            self.pending.poll(cx, |inner| match (&inner.honoured, inner.outcome.take()) {
                (_, Some(Err(error))) => Some(Err(error)),
                (Some(honoured), _) => Some(Ok(honoured.clone())),
                (None, Some(Ok(()))) => Some(Ok(SubscriptionFilter::default())),
                (None, None) => None,
            })
        })
        .await
    }

    /// Waits for the next notification; `None` once the server has ended the subscription.
    ///
    /// # Errors
    ///
    /// The subscription or its connection failed.
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
        if self.pending.abandon() == Abandoned::UnderWay {
            let pending = Arc::clone(&self.pending);
            self.client.send(Command::Cancel { pending, reason: "no longer interested" });
        }
    }
}
