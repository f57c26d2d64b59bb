use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::Context;
use core::time::Duration;

use mcp_sansio::catalog::{Catalog, CatalogError, Lists};
use mcp_sansio::http::{
    ActionId, Admission, EventPosition, ExchangeId, NotStored, ReadId, ReadRequest, RequestHead,
    RequestReader, Response, ServerTransmit, StoreAction, StoreError, StoreReply, StoredEvent,
};
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::HttpRejection;
use mcp_sansio::peer::{CommandError, Event, Request, RequestHandle, ServerMachine, ServerSession};
use mcp_sansio::{Caller, Era, Instant, Recorded, Spawner, http};

use super::ask::{ElicitationIds, InputRequired};
use super::connections::ServerHandle;
use super::context::CommandSender;
use super::executor::{PanicGuard, UNFINISHED};
use super::http_call::{HandlerCall, HandlerOutput, PendingHandler, TrackedHandler};
use super::mailbox::{Command, Mailbox};
use super::middleware::ServerLayers as _;
use super::protection::ProofReplies;
use super::reply::Outcome;
use super::sealing;
use super::server::Server;
use super::server_binding::{RunningHandlers, ServerBinding, remove_sessions};
use super::server_endpoint::ServerEndpoint;
use super::server_item::ItemHandlers;
use super::task::{OpenTasks, TaskFactory, TaskHandler, TaskSharing};
use super::threading::{ThreadSafe, Threading};

/// The machine of a server on HTTP.
pub(crate) type HttpServerMachine = Recorded<http::Server>;

/// A server on HTTP with its handlers. An adapter drives it for all clients.
///
/// It is designed to be shared behind a lock by many exchanges, so handlers run outside of it:
/// [`handle_request`](Self::handle_request) returns a [`HandlerCall`] to run, whose
/// [`HandlerOutput`] goes to [`finish`](Self::finish).
///
/// After each call of a method that takes the time, an adapter runs the calls of
/// [`poll_call`](Self::poll_call) and wakes the tasks of the exchanges that
/// [`poll_ready`](Self::poll_ready) returns.
#[derive(Debug)]
pub struct HttpServer<K: Threading = ThreadSafe> {
    pub(super) endpoint: ServerEndpoint<K, HttpServerMachine>,
    /// The time of the last input, used for the events that it caused.
    pub(super) latest: Instant,
    /// The proofs of requests that are being recorded in the store of several nodes.
    pub(super) proofs: ProofReplies,
    /// Counts the token checks in progress.
    pub(super) checks: Arc<super::protection::CheckCount>,
}

impl<K: Threading> HttpServer<K> {
    pub(super) fn new(
        server: &Server<K>,
        options: http::HttpServerOptions,
        secret: [u8; 32],
        seed: u64,
    ) -> Result<Self, CatalogError> {
        if let Some(problem) = server.problem() {
            return Err(problem);
        }
        let options = match &server.handlers.http.protection {
            Some(protection) => protection.with_host(options),
            None => options,
        };
        // The limit of one connection, plus one report per exchange.
        let limits = server.mailbox_limits().shared_by(options.limits_ref().exchanges_max);
        let commands: CommandSender = Arc::new(Mailbox::new(limits));
        let mut server = server.clone();
        server.join(&commands);
        if server.handlers.sealing.is_none() {
            server.functions().sealing = Some(sealing::derived_from(&secret));
        }
        let machine = server.http_machine(options, secret, seed)?;
        let endpoint = ServerEndpoint::over(
            server,
            commands,
            TrackedHandlers::default(),
            ElicitationIds::from_secret(&secret),
            |_| machine,
        );
        Ok(Self {
            endpoint,
            latest: Instant::ZERO,
            proofs: ProofReplies::default(),
            checks: Arc::default(),
        })
    }

    /// Read access to the machine.
    #[must_use]
    pub fn machine(&self) -> &http::Server {
        &self.endpoint.machine
    }

    /// Runs the application's functions in `guard` from now on: handlers, token checks, edits of
    /// the catalog and observers. Call it first if the adapter can catch panics: see
    /// [`Endpoint::catch_panics`](super::endpoint::Endpoint::catch_panics).
    pub fn catch_panics(&mut self, guard: PanicGuard) {
        self.endpoint.guard = guard;
        self.endpoint.machine.catch_panics(guard);
    }

    /// Runs blocking handlers with `spawn`: see
    /// [`Endpoint::set_spawner`](super::endpoint::Endpoint::set_spawner).
    pub fn set_spawner(&mut self, spawn: Spawner) {
        self.endpoint.spawner.get_or_insert(spawn);
    }

    /// Sets the clock that returns the seconds since 1970, unless the application has: see
    /// [`Endpoint::set_unix_time`](super::endpoint::Endpoint::set_unix_time).
    pub fn set_unix_time(&mut self, unix_time: Box<dyn Fn() -> u64 + Send + Sync>) {
        self.endpoint.default_unix_time(unix_time);
    }

    /// Returns a handle for sending to all clients from outside of handlers.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.endpoint.handle()
    }

    // ------------------------------------------------------------------ from the network

    /// Checks the head of a request: see [`http::Server::admit`].
    ///
    /// # Errors
    ///
    /// Returns the response that refuses the request.
    pub fn admit(&self, head: &RequestHead<'_>) -> Result<Admission, Response> {
        self.endpoint.machine.admit(head)
    }

    /// Returns the reader of requests, which needs no lock: see [`RequestReader`].
    #[must_use]
    pub fn reader(&self) -> RequestReader {
        self.endpoint.machine.reader()
    }

    /// Handles a complete request: see [`http::Server::handle_request`]. Returns the call of its
    /// handler, if it has one.
    ///
    /// On a server that requires tokens, `caller` must be the grant that
    /// [`authorize`](Self::authorize) led to, as a [`Caller`]. All other requests are refused. A
    /// stream that the request opens ends when the token expires: see
    /// [`http::Server::set_expiry`].
    pub fn handle_request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        caller: &Caller,
        now: Instant,
    ) -> (ExchangeId, Option<HandlerCall<'f, K>>) {
        let mut request = self.reader().read(head, body, caller);
        self.handle_read_request(head, &mut request, now)
    }

    /// Handles a request that the [reader](Self::reader) has read outside of the lock, as
    /// [`handle_request`](Self::handle_request) does.
    pub fn handle_read_request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        request: &mut ReadRequest<'f>,
        now: Instant,
    ) -> (ExchangeId, Option<HandlerCall<'f, K>>) {
        // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-012],
        // MCP 2025-11-25 security-best-practices#session-hijacking [SEC-011]: the adapter may have
        // skipped the check.
        if let Some(protection) = self.endpoint.handlers.http.protection.clone() {
            let (exchange, event) = self.handle_protected(&protection, head, request, now);
            return (exchange, self.handle_admitted(exchange, event, now));
        }
        let machine = &mut self.endpoint.machine;
        let (exchange, event) = machine.handle_read_request(head, request, &|_| Ok(()), now);
        (exchange, self.handle_admitted(exchange, event, now))
    }

    /// Handles the first event of a request in its exchange.
    pub(super) fn handle_admitted<'f>(
        &mut self,
        exchange: ExchangeId,
        event: Option<Event<'f>>,
        now: Instant,
    ) -> Option<HandlerCall<'f, K>> {
        self.latest = now;
        let event = event?;
        // If an observer panics, the guard ends the exchange, whose id the adapter has not received
        // yet.
        let observed = ExchangeGuard { server: self, exchange, now };
        let needs_handler = observed.server.endpoint.dispatch(&event, now);
        observed.server.endpoint.notify_changes(now);
        let work = match event {
            Event::Request(request) if needs_handler => Some(observed.server.work(request, now)),
            _ => None,
        };
        core::mem::forget(observed);
        work
    }

    /// Handles the disconnection of a client from its exchange: see
    /// [`http::Server::handle_disconnect`].
    pub fn handle_disconnect(&mut self, exchange: ExchangeId, now: Instant) {
        self.latest = now;
        self.endpoint.machine.handle_disconnect(exchange, now);
    }

    /// Fires the timers that are due at `now`. Extra calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.latest = now;
        self.endpoint.expire(now);
        self.endpoint.notify_changes(now);
    }

    /// Stops accepting requests: see [`http::Server::close`].
    pub fn close(&mut self, now: Instant) {
        self.endpoint.machine.close(now);
    }

    // ------------------------------------------------------------------ from handlers

    /// Registers a pending handler, so that it learns when its answer is no longer needed.
    pub fn track(&mut self, running: &PendingHandler<K>) {
        let Some(request) = &running.request else { return };
        let (endpoint, handle) = (&mut self.endpoint, request.handle);
        if endpoint.task_of(handle).is_none() && !endpoint.machine.is_pending(handle) {
            running.cancel_signal.cancel();
            return;
        }
        let request = endpoint.tasks.as_ref().map(|_| request.clone());
        // A request has one handler at a time.
        endpoint.running.end(&mut endpoint.machine, handle);
        let caller = endpoint.machine.begin_handler(handle);
        let tracked =
            TrackedHandler { cancel_signal: Arc::clone(&running.cancel_signal), request, caller };
        endpoint.running.0.insert(handle, tracked);
        if endpoint.tasks.as_mut().is_some_and(|tasks| tasks.take_task_request(handle)) {
            // From here on the task is useful. Fails only if the server is gone.
            let _sent = endpoint.commands.send(Command::RunAsTask(handle));
        }
    }

    /// Handles the outcome of a request's handler.
    pub fn finish(&mut self, answer: HandlerOutput<'_>, now: Instant) {
        let HandlerOutput { request, outcome } = answer;
        let endpoint = &mut self.endpoint;
        if endpoint.running.end(&mut endpoint.machine, request.handle).is_none() {
            endpoint.machine.release_handler(request.handle);
        }
        endpoint.finish(&request, outcome, now);
        endpoint.notify_changes(now);
    }

    /// Answers a request whose handler could not be run, for example because no thread was
    /// available, with an internal error.
    pub fn fail(&mut self, request: RequestHandle, now: Instant) {
        let endpoint = &mut self.endpoint;
        if endpoint.running.end(&mut endpoint.machine, request).is_none() {
            endpoint.machine.release_handler(request);
        }
        let error = ErrorObject::internal(UNFINISHED);
        if let Some(tasks) = &mut endpoint.tasks {
            tasks.take_task_request(request);
            if tasks.complete(request, Outcome::Error(error.clone()), now).is_none() {
                return endpoint.notify_changes(now);
            }
        }
        // The machine has already answered a request that was cancelled meanwhile.
        let _answered = endpoint.machine.reject(request, error, now);
    }

    /// Takes the commands of handlers and [`ServerHandle`]s. The waker in `cx` is woken when there
    /// are more.
    pub fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.endpoint.take_commands(now);
        self.endpoint.notify_changes(now);
        self.endpoint.commands.register(cx.waker());
    }

    /// Removes the items of sessions that have ended.
    fn remove_ended_sessions(&mut self, now: Instant) {
        let ServerEndpoint { machine, items, .. } = &mut self.endpoint;
        while let Some(session) = machine.poll_ended_session() {
            let edit = |catalog: &mut Catalog, items: &mut ItemHandlers<K>| {
                remove_sessions(catalog, items, |known| known == session);
            };
            machine.edit_items(items, edit, now);
        }
    }

    // ------------------------------------------------------------------ outputs

    /// Returns a handler call that no new request started: a request whose input requests were
    /// answered.
    #[must_use]
    pub fn poll_call(&mut self) -> Option<HandlerCall<'static, K>> {
        let now = self.latest;
        self.remove_ended_sessions(now);
        self.proofs.complete_all(&mut self.endpoint.machine);
        // Input requests of a task may fail at once if they cannot be sent.
        self.endpoint.notify_changes(now);
        while let Some(event) = self.endpoint.machine.poll_event() {
            if self.endpoint.dispatch(&event, now)
                && let Event::Request(request) = event
            {
                return Some(self.work(request, now));
            }
            // Input requests of a task may have been answered.
            self.endpoint.notify_changes(now);
        }
        let request = self.endpoint.tasks.as_mut()?.poll_resumed()?;
        Some(HandlerCall { sealed: false, ..self.work(request, now) })
    }

    /// Returns an exchange with new output: see [`http::Server::poll_ready`].
    #[must_use]
    pub fn poll_ready(&mut self) -> Option<ExchangeId> {
        self.endpoint.machine.poll_ready()
    }

    /// Returns the next output of an exchange: see [`http::Server::poll_transmit`].
    pub fn poll_transmit(
        &mut self,
        exchange: ExchangeId,
        now: Instant,
    ) -> Option<ServerTransmit<'_>> {
        self.endpoint.machine.poll_transmit(exchange, now)
    }

    /// Whether an exchange must be aborted: see [`http::Server::is_aborted`].
    #[must_use]
    pub fn is_aborted(&self, exchange: ExchangeId) -> bool {
        self.endpoint.machine.is_aborted(exchange)
    }

    /// Returns the next action for the external event store: see [`http::Server::poll_store`].
    #[must_use]
    pub fn poll_store(&mut self) -> Option<StoreAction> {
        self.endpoint.machine.poll_store()
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout), if no input comes earlier.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.next_deadline()
    }

    /// Checks that the tables of the server and its machine match each other, for tests.
    ///
    /// # Panics
    ///
    /// The tables disagree, which is a bug of this crate.
    pub fn assert_consistent(&self) {
        self.endpoint.assert_tables_consistent();
        if let Some(tasks) = &self.endpoint.tasks {
            let machine = &self.endpoint.machine;
            tasks.assert_shared_consistent(&|request| machine.id_of(request).is_some());
        }
    }

    /// Whether the server is closing and no response is in progress.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.endpoint.machine.is_drained()
    }

    fn work<'f>(&self, request: Request<'f>, now: Instant) -> HandlerCall<'f, K> {
        let endpoint = &self.endpoint;
        let invocation = endpoint.invocation(&request);
        let layers = endpoint.handlers.layers.as_ref().zip(endpoint.clock.as_ref());
        let wrapped =
            layers.map(|(layers, clock)| layers.wrap(&endpoint.machine, clock, &request, now));
        HandlerCall {
            id: if wrapped.is_none() { invocation.id.cloned() } else { None },
            function: invocation.function.cloned(),
            wrapped,
            handlers: Arc::clone(&endpoint.handlers),
            commands: Arc::clone(&endpoint.commands),
            is_task: invocation.is_task,
            tasks: invocation.tasks,
            guard: invocation.guard,
            spawner: endpoint.spawner.clone(),
            observation: invocation.observation,
            details: invocation.details,
            sealed: true,
            now,
            request,
        }
    }
}

/// The pending handlers, which adapters poll outside of the lock.
#[derive(Debug, Default)]
pub(super) struct TrackedHandlers(BTreeMap<RequestHandle, TrackedHandler>);

impl TrackedHandlers {
    /// Removes a handler that has ended or was cancelled.
    fn end(
        &mut self,
        machine: &mut HttpServerMachine,
        request: RequestHandle,
    ) -> Option<TrackedHandler> {
        let tracked = self.0.remove(&request)?;
        if let Some(caller) = tracked.caller {
            machine.end_handler(caller);
        }
        Some(tracked)
    }
}

impl RunningHandlers<HttpServerMachine> for TrackedHandlers {
    fn request(&mut self, handle: RequestHandle) -> Option<&Request<'static>> {
        self.0.get(&handle)?.request.as_ref()
    }

    // Handlers are keyed by the handle of their request, which stays unique.
    fn detach(&mut self, _: RequestHandle, _: u32) {}

    fn cancel(&mut self, machine: &mut HttpServerMachine, request: RequestHandle) {
        if let Some(tracked) = self.end(machine, request) {
            tracked.cancel_signal.cancel();
        }
    }

    fn cancel_task(&mut self, machine: &mut HttpServerMachine, handler: TaskHandler) {
        self.cancel(machine, handler.request);
    }

    fn cancel_all(&mut self) {
        self.0.values().for_each(|tracked| tracked.cancel_signal.cancel());
    }

    fn assert_consistent(
        &self,
        machine: &HttpServerMachine,
        task_of: impl Fn(RequestHandle) -> Option<u32>,
    ) {
        for handle in self.0.keys() {
            let is_needed = task_of(*handle).is_some() || machine.id_of(*handle).is_some();
            assert!(is_needed, "a handler whose request has ended: {handle:?}");
        }
    }
}

impl Drop for TrackedHandlers {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

impl<K: Threading> Server<K> {
    /// Creates the server on HTTP, for all its clients, for an adapter to drive.
    ///
    /// `secret` and `seed` are entropy: see [`http::Server::new`](mcp_sansio::http::Server::new).
    /// The states that handlers give to [`InputRequired::state`] are sealed with a key that is
    /// derived from `secret`, unless [`seal`](Self::seal) or
    /// [`unsealed_states`](Self::unsealed_states) was called.
    ///
    /// # Errors
    ///
    /// An item of the catalog cannot be served on HTTP; a handler takes a [`State`](super::State)
    /// that is not registered.
    pub fn http(
        &self,
        options: http::HttpServerOptions,
        secret: [u8; 32],
        seed: u64,
    ) -> Result<HttpServer<K>, CatalogError> {
        HttpServer::new(self, options, secret, seed)
    }
}

impl ServerBinding for HttpServerMachine {
    type Running<K: Threading> = TrackedHandlers;

    fn catalog(&self) -> &Catalog {
        http::Server::catalog(self)
    }

    fn edit_items<K: Threading>(
        &mut self,
        items: &mut ItemHandlers<K>,
        edit: impl FnOnce(&mut Catalog, &mut ItemHandlers<K>),
        now: Instant,
    ) {
        self.edit_catalog(|catalog| edit(catalog, items), now);
    }

    fn session_of(&self, request: RequestHandle) -> Option<&ServerSession> {
        self.session_of_request(request)
    }

    fn lists_of(&self, request: &Request<'_>) -> Option<Lists> {
        http::Server::lists_of(self, request)
    }

    fn has_open_stream(&self, request: RequestHandle) -> bool {
        http::Server::has_open_stream(self, request)
    }

    fn admit_handler(&mut self, request: &Request<'_>, now: Instant) -> bool {
        // A legacy request whose input requests are answered was admitted before.
        let is_resumed =
            request.revision.era() == Era::Legacy && request.inputs.responses().is_some();
        if is_resumed {
            return true;
        }
        let room = self.admit_handler(request.handle);
        let has_room = room.is_ok();
        if let Err(refusal) = room {
            let _answered = self.refuse(request.handle, refusal, now);
        }
        has_room
    }

    fn ask(
        &mut self,
        questions: &InputRequired,
        request: &Request<'_>,
        now: Instant,
    ) -> Result<(), CommandError> {
        self.require_input(request, questions, now)
    }

    fn refuse(
        &mut self,
        request: RequestHandle,
        refusal: HttpRejection,
        now: Instant,
    ) -> Result<(), CommandError> {
        self.refuse(request, refusal, now)
    }

    fn release_connection(&mut self, request: RequestHandle, retry: Duration) {
        self.release_connection(request, retry);
    }

    fn sharing(&mut self) -> Option<&mut dyn TaskSharing> {
        if self.options().shared_ref().is_some() { Some(self) } else { None }
    }

    fn open_tasks(factory: &TaskFactory) -> OpenTasks<Self> {
        factory.on_http
    }
}

/// Ends an exchange if handling its first event panics.
struct ExchangeGuard<'a, K: Threading> {
    server: &'a mut HttpServer<K>,
    exchange: ExchangeId,
    now: Instant,
}

impl<K: Threading> Drop for ExchangeGuard<'_, K> {
    fn drop(&mut self) {
        self.server.endpoint.machine.handle_disconnect(self.exchange, self.now);
    }
}

// ------------------------------------------------------------------ input from stores and other nodes

impl<K: Threading> HttpServer<K> {
    /// Handles the events that a read of the event store returned: see
    /// [`http::Server::handle_stored`].
    pub fn handle_stored(
        &mut self,
        read: ReadId,
        events: Result<Vec<StoredEvent>, NotStored>,
        now: Instant,
    ) {
        self.endpoint.machine.handle_stored(read, events, now);
    }

    /// Handles a read that failed because the store cannot be reached: see
    /// [`http::Server::fail_read`].
    pub fn fail_read(&mut self, read: ReadId, now: Instant) {
        self.latest = now;
        self.endpoint.machine.fail_read(read, now);
    }

    /// Handles the result of a shared store's action: see [`http::Server::handle_store`].
    pub fn handle_store(
        &mut self,
        action: ActionId,
        result: Result<StoreReply, StoreError>,
        now: Instant,
    ) {
        self.latest = now;
        self.endpoint.machine.handle_store(action, result, now);
    }

    /// Handles an event that a shared store has stored, or failed to store: see
    /// [`http::Server::handle_appended`].
    pub fn handle_appended(&mut self, position: &EventPosition) {
        self.endpoint.machine.handle_appended(position);
    }

    /// Handles an event that a shared store has refused: see
    /// [`http::Server::handle_append_refused`].
    pub fn handle_append_refused(&mut self, position: &EventPosition, now: Instant) {
        self.latest = now;
        self.endpoint.machine.handle_append_refused(position, now);
    }

    /// Handles a message of another node: see [`http::Server::handle_node_message`].
    pub fn handle_node_message(&mut self, message: &[u8], now: Instant) {
        self.latest = now;
        self.endpoint.machine.handle_node_message(message, now);
    }

    /// Announces the end of this node to the others: see [`http::Server::leave`].
    pub fn leave(&mut self) {
        self.endpoint.machine.leave();
    }
}
