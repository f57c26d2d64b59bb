//! Calls of a client that wait for their end, and subscriptions that wait for what comes.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use serde::de::DeserializeOwned;
use spin::Mutex;

use crate::jsonrpc::RawJson;
use crate::peer::{CallHandle, CallOptions, MethodName, Notification, Progress};
use crate::protocol::{LoggingLevel, SubscriptionFilter};

use super::client::{Client, ClientError, Command};

/// A call that its caller and the driver share.
pub(super) struct Pending {
    inner: Mutex<Inner>,
}

struct Inner {
    handle: Option<CallHandle>,
    options: CallOptions<'static>,
    on_progress: Option<OnProgress>,
    outcome: Option<Result<RawJson<'static>, ClientError>>,
    /// Whether there was an outcome, taken or not.
    ended: bool,
    /// Whether the caller went away: a call that was not made yet is not made.
    abandoned: bool,
    honoured: Option<SubscriptionFilter>,
    arrived: VecDeque<Notification<'static>>,
    /// What they hold, in bytes.
    arrived_bytes: usize,
    waker: Option<Waker>,
}

type OnProgress = Box<dyn FnMut(&Progress<'_>) + Send>;

/// What notifications of a subscription may hold, in bytes, while they wait for whoever reads it:
/// some thousand of the usual size. Beyond that the oldest are dropped: each says only that
/// something changed.
const ARRIVED_BYTES_MAX: usize = 256 * 1024;

impl Pending {
    pub(super) fn new(options: CallOptions<'static>, on_progress: Option<OnProgress>) -> Self {
        Self {
            inner: Mutex::new(Inner {
                handle: None,
                options,
                on_progress,
                outcome: None,
                ended: false,
                abandoned: false,
                honoured: None,
                arrived: VecDeque::new(),
                arrived_bytes: 0,
                waker: None,
            }),
        }
    }

    pub(super) fn options(&self) -> CallOptions<'static> {
        self.inner.lock().options.clone()
    }

    pub(super) fn set_handle(&self, handle: CallHandle) {
        self.inner.lock().handle = Some(handle);
    }

    pub(super) fn handle(&self) -> Option<CallHandle> {
        self.inner.lock().handle
    }

    pub(super) fn progress(&self, progress: &Progress<'_>) {
        // The callback runs outside the lock: it may make calls itself.
        let callback = self.inner.lock().on_progress.take();
        if let Some(mut callback) = callback {
            callback(progress);
            self.inner.lock().on_progress = Some(callback);
        }
    }

    pub(super) fn subscribed(&self, honoured: SubscriptionFilter) {
        self.change(|inner| inner.honoured = Some(honoured));
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

    pub(super) fn end(&self, outcome: Result<RawJson<'static>, ClientError>) {
        let callback = self.change(|inner| {
            // The progress of a task goes on.
            let lasts = inner.options.wants_task() && outcome.is_ok();
            if !inner.ended {
                inner.ended = true;
                inner.outcome = Some(outcome);
            }
            if lasts { None } else { inner.on_progress.take() }
        });
        // It may hold a handle, so it goes outside the lock.
        drop(callback);
    }

    pub(super) fn wants_task(&self) -> bool {
        self.inner.lock().options.wants_task()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.inner.lock().ended
    }

    /// Drops what is shown progress.
    pub(super) fn forget_progress(&self) {
        let callback = self.inner.lock().on_progress.take();
        drop(callback);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.inner.lock().abandoned
    }

    /// The caller went away; whether the driver has to know.
    fn abandon(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.abandoned = true;
        !inner.ended
    }

    /// Changes the state and wakes whoever waits, outside the lock.
    fn change<R>(&self, change: impl FnOnce(&mut Inner) -> R) -> R {
        let (changed, waker) = {
            let mut inner = self.inner.lock();
            (change(&mut inner), inner.waker.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        changed
    }

    /// Looks for something, and leaves the waker where it is not there yet.
    fn poll<T>(&self, cx: &Context<'_>, find: impl FnOnce(&mut Inner) -> Option<T>) -> Poll<T> {
        // Wakers are cloned and dropped outside the lock: they are code of others.
        let waker = cx.waker().clone();
        let mut inner = self.inner.lock();
        match find(&mut inner) {
            Some(found) => Poll::Ready(found),
            None => {
                let old = inner.waker.replace(waker);
                drop(inner);
                drop(old);
                Poll::Pending
            }
        }
    }
}

impl Inner {
    fn next_arrived(&mut self) -> Option<Notification<'static>> {
        let notification = self.arrived.pop_front()?;
        self.arrived_bytes -= weight(&notification);
        Some(notification)
    }
}

/// What a notification that waits costs.
fn weight(notification: &Notification<'_>) -> usize {
    size_of::<Notification<'_>>() + notification.params.as_str().len()
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner.lock();
        f.debug_struct("Pending").field("handle", &inner.handle).finish_non_exhaustive()
    }
}

/// A call that is about to be made: set what it needs, then await it. Dropping the future cancels
/// the call.
#[must_use = "a call is made when it is awaited"]
pub struct ClientCall<T> {
    client: Client,
    method: MethodName<'static>,
    params: Result<RawJson<'static>, ClientError>,
    options: CallOptions<'static>,
    on_progress: Option<OnProgress>,
    result: PhantomData<fn() -> T>,
}

impl<T> ClientCall<T> {
    pub(super) fn new(
        client: Client,
        method: MethodName<'static>,
        params: Result<RawJson<'static>, ClientError>,
    ) -> Self {
        let options = CallOptions::default();
        Self { client, method, params, options, on_progress: None, result: PhantomData }
    }

    /// How long to wait for an answer or for progress.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options = self.options.timeout(timeout);
        self
    }

    /// How long to wait altogether.
    pub fn timeout_hard(mut self, timeout: Duration) -> Self {
        self.options = self.options.timeout_hard(timeout);
        self
    }

    /// Asks for progress and shows it to `callback`, which must be quick.
    pub fn on_progress(mut self, callback: impl FnMut(&Progress<'_>) + Send + 'static) -> Self {
        self.options = self.options.progress();
        self.on_progress = Some(Box::new(callback));
        self
    }

    /// Asks for log messages of this call from `level` on, at revisions that have it per request.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.options = self.options.log_level(level);
        self
    }

    /// Members for `_meta`.
    pub fn meta(mut self, meta: RawJson<'_>) -> Self {
        self.options = self.options.meta(meta.into_owned());
        self
    }

    /// The same as a task.
    pub(super) fn run_as_task(mut self, ttl: Option<Duration>) -> Self {
        self.options = self.options.task(ttl);
        self
    }

    /// The same call, whose result is of another type.
    pub(super) fn of_result<R>(self) -> ClientCall<R> {
        let Self { client, method, params, options, on_progress, .. } = self;
        ClientCall { client, method, params, options, on_progress, result: PhantomData }
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
        let pending = Arc::new(Pending::new(self.options, self.on_progress));
        match self.params {
            Ok(params) => {
                let pending = Arc::clone(&pending);
                self.client.send(Command::Call { pending, method: self.method, params });
            }
            Err(error) => pending.end(Err(error)),
        }
        CallFuture::new(self.client, pending)
    }
}

/// Resolves to the result of a call. Dropped before that, it cancels the call.
#[must_use = "await it"]
#[derive(Debug)]
pub struct CallFuture<T> {
    client: Client,
    pending: Arc<Pending>,
    result: PhantomData<fn() -> T>,
}

impl<T> CallFuture<T> {
    pub(super) const fn new(client: Client, pending: Arc<Pending>) -> Self {
        Self { client, pending, result: PhantomData }
    }

    pub(super) fn pending(&self) -> Arc<Pending> {
        Arc::clone(&self.pending)
    }
}

impl<T: DeserializeOwned> Future for CallFuture<T> {
    type Output = Result<T, ClientError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = self.pending.poll(cx, |inner| inner.outcome.take());
        outcome.map(|outcome| outcome.and_then(|result| result.decode().map_err(ClientError::from)))
    }
}

impl<T> Drop for CallFuture<T> {
    fn drop(&mut self) {
        if self.pending.abandon() {
            let pending = Arc::clone(&self.pending);
            self.client.send(Command::Cancel { pending, reason: "the caller went away" });
        }
    }
}

/// An open subscription. Dropping it ends it.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    pending: Arc<Pending>,
}

impl Subscription {
    pub(super) fn new(client: Client, filter: SubscriptionFilter) -> Self {
        let pending = Arc::new(Pending::new(CallOptions::default(), None));
        client.send(Command::Subscribe { pending: Arc::clone(&pending), filter });
        Self { client, pending }
    }

    /// Waits until the server has acknowledged the subscription: what of it the server honours.
    ///
    /// # Errors
    ///
    /// The subscription ended, or could not be made.
    pub async fn honoured(&mut self) -> Result<SubscriptionFilter, ClientError> {
        core::future::poll_fn(|cx| {
            self.pending.poll(cx, |inner| match (&inner.honoured, inner.outcome.take()) {
                (_, Some(Err(error))) => Some(Err(error)),
                (Some(honoured), _) => Some(Ok(honoured.clone())),
                (None, Some(Ok(_))) => Some(Ok(SubscriptionFilter::default())),
                (None, None) => None,
            })
        })
        .await
    }

    /// Waits for the next notification; `None` once the server ended the subscription.
    ///
    /// # Errors
    ///
    /// The subscription or its connection broke.
    pub async fn next(&mut self) -> Result<Option<Notification<'static>>, ClientError> {
        core::future::poll_fn(|cx| {
            self.pending.poll(cx, |inner| match (inner.next_arrived(), inner.ended) {
                (Some(notification), _) => Some(Ok(Some(notification))),
                (None, false) => None,
                (None, true) => Some(match inner.outcome.take() {
                    Some(Err(error)) => Err(error),
                    Some(Ok(_)) | None => Ok(None),
                }),
            })
        })
        .await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.pending.abandon() {
            let pending = Arc::clone(&self.pending);
            self.client.send(Command::Cancel { pending, reason: "no longer interested" });
        }
    }
}
