use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use mcp_sansio::catalog::{ArgumentCheck, Invalid, Item, ItemId, ItemKind, Lists};
use mcp_sansio::jsonrpc::{ErrorObject, RawJson, RequestId};
use mcp_sansio::peer::{InputResponseParams, MethodName, Request};
use mcp_sansio::protocol::Implementation;
use mcp_sansio::{Caller, Capabilities, Instant, Method, Principal, Revision, SessionKey, Spawner};
use mcp_sansio_collections::{Deadlines, Key, Slab};
use mcp_sansio_sync::Mutex;
use serde::Serialize;

use crate::context::{CommandSender, Incoming};
use crate::executor::PanicGuard;
use crate::reply::{HandlerError, with_member, with_meta_entry};
use crate::server_binding::ServerBinding;

/// A request to a server, as its middleware sees it. Cheap to clone.
///
/// Changes reach the inner middleware and the handler.
#[derive(Clone)]
pub struct ServerRequest {
    parts: Arc<Parts>,
}

/// The inputs of a call through middleware that a plain call does not have.
#[derive(Clone)]
pub(crate) struct Wrapped {
    pub(crate) clock: Arc<dyn EndpointClock>,
    id: Option<RequestId>,
    is_read_only: bool,
    /// The lists of the server, for a list request.
    lists: Option<Lists>,
    /// Checks changed arguments of a tool.
    check: Option<ArgumentCheck>,
}

impl Wrapped {
    pub(super) fn new(
        machine: &impl ServerBinding,
        clock: &Arc<dyn EndpointClock>,
        request: &Request<'_>,
    ) -> Box<Self> {
        let catalog = machine.catalog();
        let item = request.target.item().and_then(|item| catalog.item(item));
        let is_list =
            matches!(&request.method, MethodName::Known(it) if ItemKind::listed_by(*it).is_some());
        let lists = if is_list { machine.lists_of(request) } else { None };
        let is_read_only = match item {
            Some(Item::Tool(tool)) => {
                let hints = tool.annotations.as_ref();
                hints.is_some_and(|hints| hints.read_only_hint == Some(true))
            }
            Some(_) => true,
            None => is_list || request.method.known().is_some_and(Method::is_read),
        };
        let id = machine.id_of(request.handle).cloned();
        let check = request.target.item().and_then(|item| catalog.argument_check(item));
        Box::new(Self { clock: Arc::clone(clock), id, is_read_only, lists, check })
    }
}

/// The inputs of a handler, kept for as long as it runs.
pub(super) struct Parts {
    pub(super) request: Request<'static>,
    pub(super) wrapped: Box<Wrapped>,
    pub(super) commands: CommandSender,
    pub(super) tasks: bool,
    pub(super) is_task: bool,
    pub(super) guard: PanicGuard,
    pub(super) spawner: Option<Spawner>,
    /// The observation of the request, if the server has an observer.
    pub(super) observation: Option<crate::executor::SharedObservation>,
    /// The details of the request, if the server keeps any.
    pub(super) details: Option<Arc<crate::context::RequestDetails>>,
}

impl Parts {
    pub(super) fn incoming(&self) -> Incoming<'_, 'static> {
        Incoming {
            request: &self.request,
            commands: &self.commands,
            tasks: self.tasks,
            is_task: self.is_task,
            id: self.wrapped.id.as_ref(),
            lists: self.wrapped.lists.as_ref(),
            observation: self.observation.as_ref(),
            details: self.details.as_ref(),
        }
    }
}

impl ServerRequest {
    pub(super) fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(super) fn clock(&self) -> &dyn EndpointClock {
        &*self.parts.wrapped.clock
    }

    /// Replaces the parameters: a JSON object, with `_meta`.
    ///
    /// They remain those of the method: the name, URI or task that the request names must stay,
    /// since the caller's permissions were checked for it; arguments of a tool are validated again.
    /// The values that the machine has read from the old ones stay in force: the revision, the
    /// capabilities of the client, the progress token and the answers to input requests.
    ///
    /// ```
    /// use mcp_sansio::jsonrpc::RawJson;
    /// use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, ServerRequest};
    ///
    /// /// Searches in everything, whatever the client says.
    /// async fn everywhere(mut request: ServerRequest, next: Next) -> MiddlewareResult {
    ///     if request.target().as_deref() == Some("search") {
    ///         let params = r#"{"name":"search","arguments":{"scope":"all"}}"#;
    ///         request.set_params(RawJson::parse(params)?)?;
    ///     }
    ///     next.run(request).await
    /// }
    /// # let _ = everywhere;
    /// ```
    ///
    /// # Errors
    ///
    /// The error of invalid arguments, as if the client had sent them; otherwise an internal error,
    /// because the fault is that of the middleware.
    pub fn set_params(&mut self, params: RawJson<'_>) -> Result<(), HandlerError> {
        let parts = self.parts();
        let changed = parts.request.with_params(params);
        // The fault of the middleware, not of the client.
        let changed =
            changed.map_err(|fault| HandlerError::Protocol(ErrorObject::internal(fault)))?;
        if let Some(check) = &parts.wrapped.check {
            let arguments = changed.arguments().unwrap_or(RawJson::EMPTY_OBJECT);
            check.check(&arguments, changed.revision).map_err(|invalid| match invalid {
                Invalid::Protocol(error) => HandlerError::Protocol(error),
                Invalid::Tool(text) => HandlerError::Failed(text),
            })?;
        }
        let details = parts.details.as_ref().map(|it| it.with_params(&changed.params));
        let parts = Parts {
            request: changed,
            wrapped: parts.wrapped.clone(),
            commands: Arc::clone(&parts.commands),
            observation: parts.observation.clone(),
            details,
            spawner: parts.spawner.clone(),
            ..*parts
        };
        self.parts = Arc::new(parts);
        Ok(())
    }

    /// Adds an entry to `_meta`, or replaces it.
    ///
    /// # Errors
    ///
    /// The value cannot be serialized, or the key is invalid: an internal error.
    // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-030]: the other entries stay.
    pub fn insert_meta<T: Serialize + ?Sized>(
        &mut self,
        key: &str,
        value: &T,
    ) -> Result<(), HandlerError> {
        let meta = with_meta_entry(&self.meta(), key, value)?;
        self.set_meta(&meta)
    }

    /// Removes an entry of `_meta`.
    ///
    /// # Errors
    ///
    /// None that a request of a client can cause: see [`set_params`](Self::set_params).
    pub fn remove_meta(&mut self, key: &str) -> Result<(), HandlerError> {
        let meta = with_member(&self.meta(), key, None);
        self.set_meta(&meta)
    }

    fn set_meta(&mut self, meta: &RawJson<'_>) -> Result<(), HandlerError> {
        self.set_params(with_member(self.params(), "_meta", Some(meta)))
    }

    /// Returns the metadata of the request: a JSON object, `{}` if the client sent none.
    #[must_use]
    pub fn meta(&self) -> RawJson<'_> {
        self.params().get("_meta").filter(RawJson::is_object).unwrap_or(RawJson::EMPTY_OBJECT)
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> &MethodName<'_> {
        &self.parts.request.method
    }

    /// Returns the name of the tool or prompt, or the URI of the resource or resource template,
    /// that the request names. Clients choose URIs.
    #[must_use]
    pub fn target(&self) -> Option<Cow<'_, str>> {
        let subject = self.parts.request.subject()?;
        subject.to_text().map(|text| Cow::Owned(text.into_owned())).or_else(|| {
            // A reference, which the machine has checked.
            let name = subject.get("name").or_else(|| subject.get("uri"))?;
            Some(Cow::Owned(name.to_text()?.into_owned()))
        })
    }

    /// Returns the item of the catalog that the request names.
    #[must_use]
    pub fn item(&self) -> Option<ItemId> {
        self.parts.request.target.item()
    }

    /// Returns the parameters: a JSON object, `{}` if the client sent none.
    #[must_use]
    pub fn params(&self) -> &RawJson<'_> {
        &self.parts.request.params
    }

    /// Returns the value of `arguments`.
    #[must_use]
    pub fn arguments(&self) -> Option<RawJson<'_>> {
        self.parts.request.arguments()
    }

    /// Returns the answers to the input requests of earlier rounds. In the modern era the client
    /// sends them with the request, and may invent them.
    #[must_use]
    pub fn inputs(&self) -> &InputResponseParams<'_> {
        &self.parts.request.inputs
    }

    /// Returns the sender with its permissions.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.parts.request.caller
    }

    /// Returns the value of this type that was attached to the request: see
    /// [`Context::extension`](crate::Context::extension).
    #[must_use]
    pub fn extension<T: Any>(&self) -> Option<&T> {
        self.caller().extension()
    }

    /// Returns the client's description of itself: see
    /// [`Context::client_info`](crate::Context::client_info).
    #[must_use]
    pub fn client_info(&self) -> Option<Implementation> {
        self.parts.details.as_ref()?.client_info()
    }

    /// Returns the sender, if the transport identifies it.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.caller().principal()
    }

    /// Returns the key of the session that the request belongs to: see
    /// [`Context::session`](crate::Context::session).
    #[must_use]
    pub fn session(&self) -> Option<SessionKey> {
        self.caller().session()
    }

    /// Returns the revision that governs the request.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.parts.request.revision
    }

    /// Returns the capabilities that the client declared.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.parts.request.capabilities
    }

    /// Returns the JSON-RPC id, which the client chose: requests of different clients may have the
    /// same id. `None` once the request is answered, as that of a task is.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        self.parts.wrapped.id.as_ref()
    }

    /// Whether the request runs as a task from its start: a client of 2025-11-25 asked for that.
    #[must_use]
    pub fn is_task(&self) -> bool {
        self.parts.is_task
    }

    /// Whether the request asks for a list: see
    /// [`Server::lists_through_middleware`](crate::Server::lists_through_middleware).
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.parts.wrapped.lists.is_some()
    }

    /// Whether the request is declared to change nothing: that is so for
    /// [methods that only read](Method::is_read), and tools with the
    /// [annotation](mcp_sansio::protocol::ToolAnnotations::read_only_hint).
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.parts.wrapped.is_read_only
    }

    /// Returns the current time: see the [module](super#time).
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock().now()
    }

    /// Returns a future that is ready after `duration`. Dropping it cancels the wait.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + use<> {
        self.sleep_until(self.now() + duration)
    }

    /// Returns a future that is ready at `deadline`. Dropping it cancels the wait.
    pub fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + use<> {
        Sleep { clock: Arc::clone(&self.parts.wrapped.clock), deadline, entry: None }
    }
}

impl fmt::Debug for ServerRequest {
    /// Omits the parameters and the caller, because logs have many readers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRequest")
            .field("method", self.method())
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

// ------------------------------------------------------------------ time of an endpoint

/// The time of an endpoint, as seen by its middleware, and the middleware that waits for it.
///
/// A trait, so that the binary of a server without middleware contains no code for it: only
/// [`Server::middleware`](crate::Server::middleware) refers to the implementation.
pub(crate) trait EndpointClock: fmt::Debug + Send + Sync {
    /// Returns the latest time that the endpoint was told.
    fn now(&self) -> Instant;

    /// Moves to `now`, the time of an input, and wakes all whose deadline has passed.
    fn advance(&self, now: Instant);

    /// Returns the next deadline, or `other` if that is earlier.
    fn earliest(&self, other: Option<Instant>) -> Option<Instant>;

    /// Ready when `deadline` has passed. Otherwise `entry` is the entry of the waiting task.
    fn poll_sleep(&self, entry: &mut Option<Key>, deadline: Instant, cx: &Context<'_>) -> Poll<()>;

    /// Removes the entry of a task that no longer waits.
    fn forget(&self, entry: Key);

    /// Returns the number of the endpoint among those of its server.
    fn endpoint(&self) -> usize;
}

/// The clock of one endpoint.
pub(super) struct SleepTable {
    /// Wakes the driver for an earlier deadline.
    commands: CommandSender,
    endpoint: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    now: Instant,
    /// Bounded by the running handlers, which wait here.
    sleepers: Slab<Option<Waker>>,
    deadlines: Deadlines<Instant>,
}

impl SleepTable {
    pub(super) fn new(commands: CommandSender, endpoint: usize) -> Self {
        Self { commands, endpoint, state: Mutex::default() }
    }
}

impl EndpointClock for SleepTable {
    fn now(&self) -> Instant {
        self.state.lock(|state| state.now)
    }

    fn advance(&self, now: Instant) {
        let next_due = || {
            self.state.lock(|state| {
                // Handlers on HTTP are polled by several threads, which may read their clocks in
                // another order.
                state.now = state.now.max(now);
                let (_, slot) = state.deadlines.first().filter(|(due, _)| *due <= state.now)?;
                state.deadlines.clear(slot);
                let key = state.sleepers.key_at(slot)?;
                Some(state.sleepers.get_mut(key).and_then(Option::take))
            })
        };
        while let Some(waker) = next_due() {
            // Outside of the lock: a waker may run any code.
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn earliest(&self, other: Option<Instant>) -> Option<Instant> {
        let next = self.state.lock(|state| state.deadlines.first().map(|(due, _)| due));
        next.into_iter().chain(other).min()
    }

    fn poll_sleep(&self, entry: &mut Option<Key>, deadline: Instant, cx: &Context<'_>) -> Poll<()> {
        // Wakers are cloned and dropped outside of the lock, because they run foreign code.
        let mut waker = Some(cx.waker().clone());
        let is_earliest = self.state.lock(|state| {
            if deadline <= state.now {
                return None;
            }
            let known = entry.and_then(|key| Some((key, state.sleepers.get_mut(key)?)));
            let key = match known {
                Some((key, known)) => {
                    core::mem::swap(known, &mut waker);
                    key
                }
                None => state.sleepers.insert(waker.take()),
            };
            *entry = Some(key);
            let before = state.deadlines.first();
            state.deadlines.set(key.slot, deadline);
            Some(before.is_none_or(|(earliest, _)| deadline < earliest))
        });
        drop(waker);
        match is_earliest {
            None => Poll::Ready(()),
            Some(is_earliest) => {
                if is_earliest {
                    self.commands.wake_driver();
                }
                Poll::Pending
            }
        }
    }

    fn forget(&self, entry: Key) {
        let waker = self.state.lock(|state| {
            let removed = state.sleepers.remove(entry)?;
            state.deadlines.clear(entry.slot);
            removed
        });
        drop(waker);
    }

    fn endpoint(&self) -> usize {
        self.endpoint
    }
}

impl fmt::Debug for SleepTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointClock").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// A future that is ready at a point in time.
struct Sleep {
    clock: Arc<dyn EndpointClock>,
    deadline: Instant,
    entry: Option<Key>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { clock, deadline, entry } = self.get_mut();
        clock.poll_sleep(entry, *deadline, cx)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.clock.forget(entry);
        }
    }
}
