use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use mcp_sansio::jsonrpc::{RawJson, WriteJson};
use mcp_sansio::peer::{CallOptions, HeaderFields, InvalidHeader, MethodName, Progress};
use mcp_sansio::protocol::LoggingLevel;
use serde::de::DeserializeOwned;

use crate::client::{Client, ClientError, Command};
use crate::followed_task::FollowedTask;
use crate::middleware::{ClientRequest, LayeredCall};
use crate::response_cache::CacheMode;

use super::{Abandoned, OnProgress, Pending};

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

impl<T> fmt::Debug for ClientCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCall").field("method", &self.method).finish_non_exhaustive()
    }
}

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
            (inner.options, inner.on_progress) = (options, on_progress);
            inner.cache_mode = cache_mode;
            inner.fields = self.fields;
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
