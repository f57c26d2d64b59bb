use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::Body;
use mcp_sansio::catalog::CatalogError;
use mcp_sansio::http::{
    Admission, EventStore, HttpServerOptions, RemoteAddress, RequestHead, SharedOptions,
    SharedResource,
};
use mcp_sansio::{Caller, Principal, Spawner};
use mcp_sansio_handlers::{Server, ServerHandle};

use super::budget::{CallerName, ConnectionBudget};
use super::exchange::{ResponseStart, ServerExchange};
use super::health::Health;
use super::request::identify;
use super::request::{self, BodyError, BudgetedBody};
use super::runtime::{AnyRuntime, with_timeout};
use super::shared_server::SharedServer;
use super::shared_store::OnlyEvents;
use super::{
    ExternalEventStore, ServedBody, SharedStore, exchange, response, store_task, timer_task,
};
use crate::error::Error;
use crate::network::PeerAddress;
use crate::{Runtime, seed};

/// Serves a server over HTTP. It answers requests sequentially or concurrently, from any source: a
/// [`tower_service::Service`], for any software that takes such a service.
///
/// All clones share one server. A [protected](Server::protect) server identifies the sender of a
/// request by its token; otherwise the sender is the [`Principal`] that an
/// earlier layer has put into the request's extensions. Route the [paths of its
/// metadata](mcp_sansio_oauth::protected_resource::ProtectedResource::metadata_paths) to a
/// protected server as well.
#[derive(Clone, Debug)]
pub struct HttpService<R> {
    shared: Arc<SharedServer>,
    sender: Sender,
    /// The part of the sender's connection in the budget of request bodies.
    bodies: ConnectionBudget,
    runtime: PhantomData<fn() -> R>,
}

/// The sender of requests whose extensions name none, and the extensions that are kept.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    /// The address, if no principal is known.
    pub(super) address: Option<RemoteAddress>,
    /// The principal or the address. Created once for a connection.
    pub(super) caller: Caller,
    pub(super) extensions: Option<Arc<Vec<AttachExtension>>>,
}

/// Attaches one of the extensions of a request, if it is there.
type AttachExtension = fn(&http::Extensions, Caller) -> Caller;

impl Sender {
    fn name(&self) -> Option<CallerName> {
        let principal = self.caller.principal().cloned().map(CallerName::Principal);
        principal.or_else(|| self.address.map(CallerName::Address))
    }
}

/// How long [`HttpService::close`] waits for the store. 5 s: as long as a server waits for an
/// action by default.
const STORE_TIME: Duration = Duration::from_secs(5);

impl<R: Runtime> HttpService<R> {
    /// Creates a service for a server. A task of the [current](Runtime::current) runtime handles
    /// its deadlines; it ends with the last clone.
    ///
    /// # Errors
    ///
    /// The server's catalog is invalid; the operating system has no entropy, or is out of threads
    /// if the runtime needs one for the task.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`] does.
    pub fn new(server: &Server, options: HttpServerOptions) -> Result<Self, Error> {
        let service = Self::with_runtime(server, options, secret()?, seed(), R::current())?;
        // The timer task has a reference, unless the runtime has dropped it.
        if Arc::weak_count(&service.shared) == 0 {
            let dropped = "cannot start the timer task: the system is out of threads";
            return Err(io::Error::other(dropped).into());
        }
        Ok(service)
    }

    /// Creates a service whose events are also kept in the given event store, for clients that
    /// resume later than the memory allows. A task runs the store, like the one for deadlines.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub fn with_event_store(
        server: &Server,
        options: HttpServerOptions,
        store: impl ExternalEventStore,
    ) -> Result<Self, Error> {
        let service = Self::new(server, options.event_store(EventStore::External))?;
        service.run_store(OnlyEvents(store));
        Ok(service)
    }

    /// Creates a service that shares its sessions and streams with other nodes through a store, so
    /// that any of them can serve any request: see [`HttpServerOptions::shared`]. A task runs the
    /// store, like the one for deadlines.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub fn with_shared_store(
        server: &Server,
        options: HttpServerOptions,
        sharing: SharedOptions,
        store: impl SharedStore,
    ) -> Result<Self, Error> {
        let service = Self::new(server, options.shared(sharing))?;
        service.run_store(store);
        Ok(service)
    }

    /// Runs the store of a service that was created with options that
    /// [share](HttpServerOptions::shared) sessions.
    fn run_store(&self, store: impl SharedStore) {
        let shared = &self.shared;
        let store_task = store_task::run(Arc::downgrade(shared), store);
        shared.runtime.spawn(Box::pin(store_task));
    }

    /// Creates a service on the given runtime. `secret` and `seed` are those of [`Server::http`].
    ///
    /// # Errors
    ///
    /// The server's catalog is invalid: the caller's fault.
    pub fn with_runtime(
        server: &Server,
        options: HttpServerOptions,
        secret: [u8; 32],
        seed: u64,
        runtime: R,
    ) -> Result<Self, CatalogError> {
        let mut limits = options.limits_ref().clone();
        limits.handlers_max = limits.handlers_max.min(R::HANDLERS_MAX);
        let mut server = server.http(options.limits(limits), secret, seed)?;
        server.set_spawner(Spawner::new(R::spawn_blocking));
        let runtime: Arc<dyn AnyRuntime> = Arc::new(runtime);
        let shared = Arc::new(SharedServer::new(server, Arc::clone(&runtime)));
        let timer_task = timer_task::run(Arc::downgrade(&shared), runtime.timer());
        runtime.spawn(Box::pin(timer_task));
        let unknown = Sender { address: None, caller: Caller::ANONYMOUS, extensions: None };
        Ok(Self::from_parts(shared, unknown))
    }

    /// Passes the values of this type that a layer in front of the service puts into the extensions
    /// of requests, such as the user that it has authenticated, to all that decides about a
    /// request: `call.extension::<T>()` in handlers, and [`Caller::extension`] in token checks,
    /// middleware and conditions of the catalog. Other extensions are not kept, and cost nothing.
    #[must_use]
    pub fn extension<T: Clone + Send + Sync + 'static>(mut self) -> Self {
        let attach: AttachExtension = |extensions, sender| match extensions.get::<T>() {
            Some(value) => sender.with_extension(value.clone()),
            None => sender,
        };
        Arc::make_mut(self.sender.extensions.get_or_insert_default()).push(attach);
        self
    }

    /// Returns the same server for the requests of one connection: they come from `address`, unless
    /// a [`RemoteAddress`] among their extensions names another client, as set by a trusted proxy.
    /// Without either, a request without a [`Principal`] is not counted
    /// against any client's share: see [`ServerLimits`](mcp_sansio::http::ServerLimits).
    #[must_use]
    pub fn with_remote_address(&self, address: impl Into<RemoteAddress>) -> Self {
        let address = address.into();
        self.with_sender(Some(address), Caller::ANONYMOUS.with_extension(address))
    }

    /// Returns the same server for the requests of one connection: their sender is `principal`,
    /// unless their extensions name another, or their token does on a [protected](Server::protect)
    /// server. Replaces an address.
    #[must_use]
    pub fn with_principal(&self, principal: Principal) -> Self {
        self.with_sender(None, Caller::from_principal(principal))
    }

    /// Returns the same server for the requests of `peer`.
    pub(super) fn with_peer(&self, peer: PeerAddress, principals: bool) -> Self {
        match (peer, principals.then(|| peer.principal()).flatten()) {
            (_, Some(principal)) => self.with_principal(principal),
            (PeerAddress::Tcp(address), None) => self.with_remote_address(address),
            #[cfg(unix)]
            (PeerAddress::Unix { .. }, None) => self.clone(),
        }
    }

    fn with_sender(&self, address: Option<RemoteAddress>, caller: Caller) -> Self {
        let sender = Sender { address, caller, extensions: self.sender.extensions.clone() };
        Self::from_parts(Arc::clone(&self.shared), sender)
    }

    fn from_parts(shared: Arc<SharedServer>, sender: Sender) -> Self {
        let bodies = shared.bodies.connection_of(sender.name(), usize::MAX);
        Self { shared, sender, bodies, runtime: PhantomData }
    }

    /// Returns the identity of the connection's peer, if it is known.
    pub(super) fn peer_name(&self) -> Option<CallerName> {
        self.sender.name()
    }

    /// Returns a handle to all clients, for use outside of handlers.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.shared.lock().server.handle()
    }

    /// Accepts no more requests, through any clone, and waits until the responses in progress are
    /// complete, and the store has them. Open event streams end. On a server with a [shared
    /// store](Self::with_shared_store), clients resume them on other nodes, so it waits for
    /// handlers as well.
    pub async fn close(&self) {
        let shared = &self.shared;
        shared.change(|state| state.server.close(shared.now()));
        poll_fn(|cx| shared.lock().poll_drained(cx)).await;
        if shared.lock().server.machine().node_id().is_some() {
            // The clients of some may have resumed their streams on other nodes.
            poll_fn(|cx| shared.poll_handler_tasks(cx)).await;
        }
        shared.change(|state| state.server.leave());
        // Other nodes continue what this one has stored.
        let stored = pin!(poll_fn(|cx| shared.lock().poll_stored(cx)));
        let _in_time = with_timeout(STORE_TIME, &*shared.runtime, stored).await;
    }

    /// Answers `GET` requests for `path` with the state of this node, for load balancers: 200, or
    /// 503 if the service is [closing](Self::close) or [not ready](Self::set_ready), or has not
    /// reached the store of the nodes since it started. The body is JSON, for example
    /// `{"status":"ready","store":"available","sessions":12,"dropped_store_actions":0}`.
    ///
    /// Such a request needs no token. The body is empty unless its host and origin are allowed, so
    /// that no web page of another site can read it: the names of this machine always are. A
    /// [protected](Server::protect) server leaves out the counts. A store that is no longer
    /// available does not take a node out of service: it is usually the same for all nodes, which
    /// continue with their own memory.
    #[must_use]
    pub fn health(self, path: impl Into<String>) -> Self {
        // Set once, before the service is cloned.
        let _known = self.shared.health.set(Health::new(path.into()));
        self
    }

    /// Whether [health checks](Self::health) answer 200; `true` at first. Requests are served as
    /// before. Set it to `false` before a shutdown, and wait until load balancers have noticed, so
    /// that no client gets an error.
    pub fn set_ready(&self, ready: bool) {
        if let Some(health) = self.shared.health.get() {
            health.set_ready(ready);
        }
    }

    /// Returns whether the store of the nodes answers, for health checks. `true` without one.
    #[must_use]
    pub fn is_store_available(&self) -> bool {
        self.shared.lock().server.machine().is_store_available()
    }

    /// Serves one request. A [protected](Server::protect) server identifies its sender by the
    /// token; otherwise the sender is the [`Principal`] among the request's
    /// extensions.
    ///
    /// Dropping the future, or the body of the response before its end, reports that the client has
    /// disconnected.
    pub fn serve<B: Body>(
        &self,
        request: http::Request<B>,
    ) -> impl Future<Output = http::Response<ServedBody>> + use<R, B> {
        let (shared, sender) = (Arc::clone(&self.shared), self.sender.clone());
        let bodies = self.bodies.clone();
        let (parts, body) = request.into_parts();
        async move { respond(&shared, &parts, sender, &bodies, body).await }
    }
}

/// Returns an unpredictable secret, from which session ids are derived.
fn secret() -> io::Result<[u8; 32]> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(secret)
}

impl<R: Runtime, B> tower_service::Service<http::Request<B>> for HttpService<R>
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = http::Response<ServedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let served = self.serve(request);
        Box::pin(async move { Ok(served.await) })
    }
}

async fn respond<B: Body>(
    shared: &Arc<SharedServer>,
    parts: &http::request::Parts,
    sender: Sender,
    bodies: &ConnectionBudget,
    body: B,
) -> http::Response<ServedBody> {
    if request::is_malformed(parts) {
        return response::bare(http::StatusCode::BAD_REQUEST);
    }
    let head = request::request_head(parts, sender.address);
    let check = shared.health.get().and_then(|health| health.answer(parts, &head, shared));
    if let Some(response) = check {
        return response;
    }
    let peer = sender.caller.principal().cloned();
    let caller = match identify(shared, &head, parts, sender).await {
        Ok(caller) => caller,
        Err(response) => return response::whole(response),
    };
    let admission = match shared.reader.admit(&head) {
        Ok(admission) => admission,
        Err(refused) => return response::whole(refused),
    };
    let name = name_other_than(peer.as_ref(), &caller, parts);
    let body = pin!(body);
    let read = request::read_body(body, parts.version, admission, bodies, name.as_ref());
    let refused = match with_timeout(admission.body_time, &*shared.runtime, pin!(read)).await {
        Some(Ok(body)) => {
            let mut response = answer(shared, admission, &head, body, &caller).await;
            response.body_mut().set_caller(name.clone());
            return response;
        }
        Some(Err(BodyError::TooMany(exhausted))) => {
            SharedResource::BodyBytes.refusal(exhausted).to_response(None)
        }
        Some(Err(BodyError::TooLong)) => shared.reader.body_too_long(),
        Some(Err(BodyError::Incomplete)) => return response::bare(http::StatusCode::BAD_REQUEST),
        None => shared.reader.body_too_slow(),
    };
    response::whole(refused)
}

/// Returns the identity of a caller that is not the peer of its connection: by its token or an
/// earlier layer.
fn name_other_than(
    peer: Option<&Principal>,
    caller: &Caller,
    parts: &http::request::Parts,
) -> Option<CallerName> {
    match (caller.principal(), peer) {
        (Some(principal), Some(peer)) if principal == peer => None,
        (Some(principal), _) => Some(CallerName::Principal(principal.clone())),
        (None, _) => parts.extensions.get().copied().map(CallerName::Address),
    }
}

async fn answer(
    shared: &Arc<SharedServer>,
    admission: Admission,
    head: &RequestHead<'_>,
    body: BudgetedBody,
    caller: &Caller,
) -> http::Response<ServedBody> {
    // Always ready at once, and only needs the waker. Its locals are not part of the enclosing
    // future.
    let begun = poll_fn(|cx| {
        let (mut exchange, work) =
            ServerExchange::begin(shared, admission, head, &body.bytes, caller);
        let completed = work.and_then(|work| exchange::start_handler(shared, work, cx));
        let start = completed.and_then(|completed| exchange.complete(completed));
        Poll::Ready((exchange, start))
    });
    let (mut exchange, start) = begun.await;
    // A pending handler has taken the parts that it needs.
    drop(body);
    let start = match start {
        Some(start) => start,
        None => poll_fn(|cx| exchange.poll_response_start(cx)).await,
    };
    match start {
        ResponseStart::Full(response) => response::whole(response),
        ResponseStart::Streaming(head) => response::with_head(&head, ServedBody::stream(exchange)),
        ResponseStart::Aborted => response::bare(http::StatusCode::SERVICE_UNAVAILABLE),
    }
}
