//! Pending calls and open subscriptions of a client.

mod call_pool;
mod client_call;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::{RawJson, WriteError, WriteJson};
use mcp_sansio::peer::{CallHandle, CallOptions, HeaderFields, Notification, Progress};
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio_sync::Mutex;

use super::client::{Client, ClientError, Command};
use super::panics::PanicGuard;
use super::response_cache::CacheMode;

pub(super) use call_pool::CallPool;
use call_pool::POOL_TEXT_MAX;
pub use client_call::{CallFuture, ClientCall};

/// The state of a call, shared by its caller and the driver.
pub(super) struct Pending {
    inner: Mutex<Inner>,
}

struct Inner {
    handle: Option<CallHandle>,
    options: CallOptions<'static>,
    fields: HeaderFields,
    cache_mode: CacheMode,
    on_progress: Option<OnProgress>,
    outcome: Option<Result<(), ClientError>>,
    /// The parameters until the call is sent; the result once it has ended.
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

pub(super) type OnProgress = Box<dyn FnMut(&Progress<'_>) + Send>;

/// The most bytes of notifications that a subscription queues for its reader: some thousand of the
/// usual size. Beyond that the oldest are dropped: each says only that something changed.
const ARRIVED_BYTES_MAX: usize = 256 * 1024;

impl Pending {
    pub(super) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                handle: None,
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
                honoured: None,
                renewal: None,
                arrived: VecDeque::new(),
                arrived_bytes: 0,
                waker: None,
            }),
        }
    }

    /// Sets the header fields.
    pub(super) fn with_fields(mut self, fields: HeaderFields) -> Self {
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
    pub(super) fn write(&self, params: &dyn WriteJson) -> Result<(), WriteError> {
        let mut text = self.inner.lock(|inner| core::mem::take(&mut inner.text));
        // Outside of the lock: the serialization may run any code.
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

    /// Takes the parameters of a call that was not sent.
    fn take_text(&self) -> String {
        self.inner.lock(|inner| core::mem::take(&mut inner.text))
    }

    /// Returns the header fields of a subscription, which may be renewed, or of a task.
    pub(super) fn fields(&self) -> HeaderFields {
        self.inner.lock(|inner| inner.fields.clone())
    }

    /// Takes the header fields of the call, or copies them if the requests about its task need them
    /// as well.
    pub(super) fn fields_to_send(&self, follows_tasks: bool) -> HeaderFields {
        self.inner.lock(|inner| {
            if follows_tasks || inner.options.wants_task() {
                inner.fields.clone()
            } else {
                core::mem::take(&mut inner.fields)
            }
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

    pub(super) fn wants_task(&self) -> bool {
        self.inner.lock(|inner| inner.options.wants_task())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.inner.lock(|inner| inner.ended)
    }

    /// Whether the call has created a task to which the application has no handle yet.
    pub(super) fn has_unclaimed_task(&self) -> bool {
        self.inner.lock(|inner| inner.unclaimed_task.is_some())
    }

    /// Records that the application has a handle to the task, so the end of the call does not
    /// cancel it.
    pub(super) fn claim_task(&self) {
        let claimed = self.inner.lock(|inner| inner.unclaimed_task.take());
        drop(claimed);
    }

    /// Takes the id, as JSON text, of a task that the call has created and that has no user, if
    /// there is one. `follows_tasks` says whether the result may be a task of the extension.
    pub(super) fn take_unclaimed_task(&self, follows_tasks: bool) -> Option<Box<str>> {
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
    pub(super) fn forget_progress(&self) {
        let callback = self.inner.lock(|inner| inner.on_progress.take());
        drop(callback);
    }

    pub(super) fn is_abandoned(&self) -> bool {
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
    pub(super) fn new(client: Client, filter: SubscriptionFilter) -> Self {
        Self::start(client, filter, Arc::new(Pending::new()))
    }

    pub(super) fn with_fields(
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
        if self.pending.abandon(false) == Abandoned::UnderWay {
            let pending = Arc::clone(&self.pending);
            self.client.send(Command::Cancel { pending, reason: "no longer interested" });
        }
    }
}
