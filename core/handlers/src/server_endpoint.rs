use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::task::Context;

use mcp_sansio::catalog::{Catalog, CatalogError, Item};
use mcp_sansio::framing::FrameError;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    CloseReason, Event, Request, RequestHandle, ServerCommand, StreamMachine, Subject,
};
use mcp_sansio::stream::Endpoint;
use mcp_sansio::{Instant, Recorded, Spawner, peer};

use super::ask::ElicitationIds;
use super::connections::{Join, ServerHandle};
use super::context::CommandSender;
use super::dispatch::{Invocation, check_output, into_owned_request};
use super::executor::{DETACHED, Executor, PanicGuard, report_panic};
use super::mailbox::{Command, Mailbox};
use super::middleware::{EndpointClock, ServerLayers as _};
use super::reply::Outcome;
use super::server::{Handlers, Server};
use super::server_binding::{RunningHandlers, ServerBinding};
use super::server_item::{CatalogEdit, ItemHandler, ItemHandlers, StateCheck};
use super::task::{ProgressReport, TaskHandler, TaskStart, Tasks, is_task_request};
use super::threading::{Step, ThreadSafe, Threading};

/// The machine of a server over a byte stream.
pub(crate) type StreamServer = Recorded<peer::Server>;

/// The server's side of one connection with its handlers. An adapter drives it, over a byte stream
/// as an [`Endpoint`]. `M` is the machine of the transport.
#[derive(Debug)]
#[allow(private_bounds, reason = "implemented only by the machines of this crate")]
pub struct ServerEndpoint<K: Threading = ThreadSafe, M: ServerBinding = StreamServer> {
    pub(super) machine: M,
    pub(super) handlers: Arc<Handlers<K>>,
    pub(super) items: ItemHandlers<K>,
    /// The pending handlers.
    pub(super) running: M::Running<K>,
    pub(super) commands: CommandSender,
    /// The guard that handlers run in.
    pub(super) guard: PanicGuard,
    /// Where blocking handlers run; `None` runs them in place.
    pub(super) spawner: Option<Spawner>,
    pub(super) tasks: Option<Box<dyn Tasks<M>>>,
    pub(super) elicitations: ElicitationIds,
    /// The time of the middleware, if there is any.
    pub(super) clock: Option<Arc<dyn EndpointClock>>,
    /// Keeps the server that [`Connections`](super::Connections) edit, if the application has
    /// dropped it.
    _joining: Option<Arc<dyn Join<K>>>,
}

#[allow(private_bounds, reason = "implemented only by the machines of this crate")]
impl<K: Threading, M: ServerBinding> ServerEndpoint<K, M> {
    /// Creates an endpoint for `server`. `machine` consumes the server, so that nothing is cloned.
    #[inline(always)]
    pub(super) fn over(
        mut server: Server<K>,
        commands: CommandSender,
        running: M::Running<K>,
        elicitations: ElicitationIds,
        machine: impl FnOnce(Server<K>) -> M,
    ) -> Self {
        Self {
            handlers: Arc::clone(&server.handlers),
            items: Arc::clone(&server.items),
            clock: server.handlers.layers.as_ref().map(|layers| layers.open_clock(&commands)),
            running,
            commands,
            guard: PanicGuard::NONE,
            spawner: server.handlers.spawner.clone(),
            tasks: server.open_tasks(),
            elicitations,
            _joining: server.joining.take(),
            machine: machine(server),
        }
    }

    /// Returns a handle for sending on the connection from outside of handlers.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        ServerHandle::new(Arc::clone(&self.commands))
    }

    /// Checks the tables: see [`Endpoint::assert_consistent`].
    pub(super) fn assert_tables_consistent(&self) {
        self.machine.assert_consistent();
        let tasks = self.tasks.as_deref();
        if let Some(tasks) = tasks {
            tasks.assert_consistent(&|request| self.machine.id_of(request).is_some());
        }
        self.running.assert_consistent(&self.machine, |request| tasks?.place_of(request));
    }

    /// Sets the clock for the time of day, unless the application has.
    pub(super) fn default_unix_time(&mut self, unix_time: Box<dyn Fn() -> u64 + Send + Sync>) {
        if self.handlers.unix_time.is_none() {
            Arc::make_mut(&mut self.handlers).unix_time = Some(Arc::from(unix_time));
        }
    }

    // ------------------------------------------------------------------ from clients

    /// Handles an event. Returns whether it is a request that needs a handler.
    pub(super) fn dispatch(&mut self, event: &Event<'_>, now: Instant) -> bool {
        self.advance_clock(now);
        if let Err(panicked) = self.handlers.show(event, self.guard)
            && let Event::Request(request) = event
        {
            self.answer(request, Outcome::Error(panicked.into()), now);
            return false;
        }
        match event {
            Event::Request(request) if is_task_request(request) && self.tasks.is_some() => {
                self.serve_task(request, now);
            }
            Event::Request(request) => {
                return self.machine.admit_handler(request, now)
                    && self.begin_task(request, now) != TaskStart::Refused;
            }
            Event::Cancelled(cancelled) => {
                if let Subject::Request(handle) = cancelled.subject {
                    if let Some(tasks) = &mut self.tasks {
                        tasks.forget(handle, now);
                    }
                    self.running.cancel(&mut self.machine, handle);
                }
            }
            Event::Notification(notification) => self.receive_notification(notification),
            // Answers are still sent after the end of input: a client may close its output and keep
            // reading.
            Event::Closed(CloseReason::EndOfInput) => {}
            Event::Closed(_) => self.running.cancel_all(),
            _ => {}
        }
        false
    }

    /// Finds the handler of a request and its inputs.
    pub(super) fn invocation(&self, request: &Request<'_>) -> Invocation<'_, K> {
        let is_task = self.task_of(request.handle).is_some();
        let (catalog, asked) = (self.machine.catalog(), (request, is_task));
        let function = self.handlers.prepare(&self.items, catalog, asked, self.guard);
        let details = self.details(request);
        let function = function.and_then(|function| {
            let checked = self.check_extension(request, details.as_deref());
            checked.map(|()| function).map_err(|error| Box::new(Outcome::Error(error)))
        });
        Invocation {
            handlers: &self.handlers,
            function,
            commands: &self.commands,
            tasks: self.tasks.is_some(),
            is_task,
            id: self.machine.id_of(request.handle),
            guard: self.guard,
            spawner: self.spawner.as_ref(),
            observation: self.machine.observation_of(request.handle),
            details,
        }
    }

    // ------------------------------------------------------------------ from handlers

    /// Takes the outcome of a handler: an answer, or progress of a task.
    pub(super) fn finish(&mut self, request: &Request<'_>, mut outcome: Outcome, now: Instant) {
        // Messages of the handler are sent before its answer.
        self.take_commands(now);
        // Without unwinding there is nothing to report, and an image is smaller.
        if cfg!(panic = "unwind")
            && let Outcome::Panicked(panicked) = outcome
        {
            let (handler, observers) = (self.handler_name(request), &self.handlers.observers);
            outcome = Outcome::Error(report_panic(observers, handler, panicked, self.guard));
        }
        let handle = request.handle;
        if let Outcome::InputRequired(questions) = &mut outcome {
            questions.name_elicitations(self.elicitations, request);
        }
        let Some(tasks) = &mut self.tasks else { return self.answer(request, outcome, now) };
        if tasks.place_of(handle).is_some() {
            let check = || check_output(self.machine.catalog(), request, outcome);
            let checked = self.guard.run(check);
            outcome = checked.unwrap_or_else(|panicked| Outcome::Error(panicked.into()));
        }
        let task_requested = tasks.take_task_request(handle);
        match tasks.complete(handle, outcome, now) {
            None => {}
            // The handler now waits for answers, so a task is useful from here on.
            Some(outcome @ Outcome::InputRequired(_)) if task_requested => {
                if !tasks.create(&mut self.machine, request, now) {
                    return self.answer(request, outcome, now);
                }
                let _taken = tasks.complete(handle, outcome, now);
            }
            Some(outcome) => self.answer(request, outcome, now),
        }
    }

    /// Names the handler of a request, for people.
    #[cold]
    fn handler_name(&self, request: &Request<'_>) -> String {
        let (target, method) = (&request.target, &request.method);
        let item = target.item().filter(|_| target.argument().is_none());
        let (kind, name) = match item.and_then(|item| self.machine.catalog().item(item)) {
            Some(Item::Tool(tool)) => ("tool", &*tool.name),
            Some(Item::Prompt(prompt)) => ("prompt", &*prompt.name),
            Some(Item::Resource(resource)) => ("resource", &*resource.uri),
            Some(Item::ResourceTemplate(it)) => ("resource template", &*it.uri_template),
            _ => return alloc::format!("`{method}`"),
        };
        alloc::format!("{kind} `{name}`")
    }

    pub(super) fn answer(&mut self, request: &Request<'_>, outcome: Outcome, now: Instant) {
        let handle = request.handle;
        // The machine has already handled a request that was cancelled meanwhile, or an answer that
        // could not be serialized.
        let _answered = match self.handlers.seal_state(request, outcome, now) {
            Outcome::Result(body) => self.machine.respond(handle, &body, now),
            Outcome::Error(error) => self.machine.reject(handle, error, now),
            Outcome::Panicked(panicked) => self.machine.reject(handle, panicked.into(), now),
            Outcome::InputRequired(questions) => self.machine.ask(&questions, request, now),
            Outcome::Refused(refusal) => self.machine.refuse(handle, *refusal, now),
        };
    }

    /// Executes the commands of handlers and [`ServerHandle`]s.
    pub(super) fn take_commands(&mut self, now: Instant) {
        // Takes only the commands queued at the start: a thread that keeps sending must not block
        // the driver.
        for _ in 0..self.commands.len() {
            let Some(command) = self.commands.take_command() else { return };
            match command {
                Command::Progress { request, progress, total, message } => {
                    let message = message.as_deref();
                    let report = ProgressReport { progress, total, message };
                    let (machine, tasks) = (&mut self.machine, self.tasks.as_mut());
                    if !tasks.is_some_and(|tasks| tasks.report(machine, request, report, now)) {
                        self.machine.progress(request, progress, total, message, now);
                    }
                }
                Command::Log { request, level, logger, data } => {
                    let (logger, data) = (logger.map(Into::into), RawJson::from(data).into());
                    // The data is valid JSON, so serializing it cannot fail.
                    let log = ServerCommand::Log { request, level, logger, data };
                    let _sent = self.machine.apply(log, now);
                }
                Command::Notify { request, method, params } => {
                    let _sent = self.machine.notify_other(request, method, &params, now);
                }
                Command::ResourceUpdated { uri, .. } => {
                    self.machine.resource_updated(&uri, now);
                }
                Command::EditCatalog { edit, .. } | Command::TakeEdit(edit) => {
                    let (guard, states) = (self.guard, self.handlers.state_map());
                    let edit = |catalog: &mut Catalog, items: &mut ItemHandlers<K>| {
                        let edited =
                            CatalogEdit::run(catalog, StateCheck::Now(states), guard, edit);
                        edited.apply::<K>(items, catalog, ItemHandler::into_kind);
                    };
                    self.machine.edit_items(&mut self.items, edit, now);
                }
                Command::ReleaseConnection { request, retry } => {
                    self.machine.release_connection(request, retry);
                }
                Command::RunAsTask(request) => self.run_as_task(request, now),
                Command::Close => self.machine.close(now),
            }
        }
    }

    // ------------------------------------------------------------------ tasks

    /// Answers a request about a task.
    // MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
    fn serve_task(&mut self, request: &Request<'_>, now: Instant) {
        let Some(tasks) = &mut self.tasks else { return };
        let served = tasks.serve(&mut self.machine, request, now);
        if let Some(handler) = served.dropped {
            self.drop_handler(handler);
        }
        if let Some(outcome) = served.outcome {
            self.answer(request, outcome, now);
        }
    }

    /// Creates a task for a call that requests one.
    fn begin_task(&mut self, request: &Request<'_>, now: Instant) -> TaskStart {
        let Some(tasks) = &mut self.tasks else { return TaskStart::Call };
        tasks.begin(&mut self.machine, request, now)
    }

    /// Turns a running handler into a task. If it has not been polled yet, this happens when it
    /// first waits.
    fn run_as_task(&mut self, handle: RequestHandle, now: Instant) {
        // Has no effect on a request that is answered or already a task.
        if self.machine.revision_of(handle).is_none() || self.task_of(handle).is_some() {
            return;
        }
        let Some(tasks) = &mut self.tasks else { return };
        let Some(request) = self.running.request(handle) else {
            return tasks.request_task(handle);
        };
        // Without room for another task, the client keeps waiting for its answer.
        if tasks.create(&mut self.machine, request, now)
            && let Some(place) = tasks.place_of(handle)
        {
            self.running.detach(handle, place);
        }
    }

    /// Returns the slot of the task that a request has become.
    pub(super) fn task_of(&self, request: RequestHandle) -> Option<u32> {
        self.tasks.as_ref()?.place_of(request)
    }

    fn drop_handler(&mut self, handler: TaskHandler) {
        self.running.cancel_task(&mut self.machine, handler);
    }

    /// Reports tasks whose status has changed to subscribed and waiting clients.
    pub(super) fn notify_changes(&mut self, now: Instant) {
        while let Some(tasks) = &mut self.tasks
            && let Some(handler) = tasks.notify_changes(&mut self.machine, now)
        {
            self.drop_handler(handler);
        }
    }

    // ------------------------------------------------------------------ time

    /// Moves the clock of the middleware, if there is any.
    // Out of line, because servers without middleware call it as well.
    #[inline(never)]
    pub(super) fn advance_clock(&self, now: Instant) {
        if let Some(clock) = &self.clock {
            clock.advance(now);
        }
    }

    /// Fires the timers that are due at `now`.
    pub(super) fn expire(&mut self, now: Instant) {
        self.advance_clock(now);
        self.machine.handle_timeout(now);
        while let Some(handler) = self.tasks.as_mut().and_then(|tasks| tasks.expire(now)) {
            self.drop_handler(handler);
        }
    }

    /// Returns the next deadline.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let tasks = self.tasks.as_ref().and_then(|tasks| tasks.poll_timeout());
        let deadline = [self.machine.poll_timeout(), tasks].into_iter().flatten().min();
        match &self.clock {
            Some(clock) => clock.earliest(deadline),
            None => deadline,
        }
    }
}

impl<K: Threading, M: ServerBinding> Drop for ServerEndpoint<K, M> {
    fn drop(&mut self) {
        self.commands.close();
    }
}

impl<K: Threading> ServerEndpoint<K> {
    // Out of line it is moved with one copy; inlined, it was copied field by field, with some 2 KB
    // of code.
    #[inline(never)]
    pub(super) fn new(mut server: Server<K>, seed: u64) -> Self {
        let commands: CommandSender = Arc::new(Mailbox::new(server.mailbox_limits()));
        server.join(&commands);
        let running = Executor::new(Arc::clone(&commands));
        let elicitations = ElicitationIds::from_seed(seed);
        Self::over(server, commands, running, elicitations, |server| server.machine(seed))
    }

    /// Read access to the machine.
    #[must_use]
    pub fn machine(&self) -> &peer::Server {
        &self.machine
    }

    fn handle_event(&mut self, event: Event<'_>, now: Instant) {
        if !self.dispatch(&event, now) {
            return;
        }
        let Event::Request(mut request) = event else { return };
        match self.handlers.open_state(&mut request, now) {
            Ok(()) => self.call(request, now),
            Err(error) => self.answer(&request, Outcome::Error(error), now),
        }
    }

    fn handle_queued_events(&mut self, now: Instant) {
        loop {
            // Input requests of a task may fail at once if they cannot be sent.
            self.notify_changes(now);
            let mut moved = false;
            while let Some(event) = self.machine.poll_event() {
                self.handle_event(event, now);
                moved = true;
            }
            while let Some(request) = self.tasks.as_mut().and_then(|tasks| tasks.poll_resumed()) {
                self.call(request, now);
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }

    /// Passes a request to its handler.
    fn call(&mut self, request: Request<'_>, now: Instant) {
        let invocation = self.invocation(&request);
        let observation = invocation.observation.clone();
        let call = || match (&self.handlers.layers, &self.clock) {
            (Some(layers), Some(clock)) => {
                layers.call_on_stream(invocation, &self.machine, clock, &request)
            }
            _ => invocation.call(&request),
        };
        let step = super::executor::call_observed(observation, call);
        match step {
            Step::Ready(outcome) => self.finish(&request, outcome, now),
            Step::Pending(task) => {
                let detached = self.task_of(request.handle).map(|place| place | DETACHED);
                let place = detached.unwrap_or_else(|| request.handle.slot());
                let kept = into_owned_request(
                    request,
                    self.tasks.is_some(),
                    self.handlers.sealing.as_deref(),
                );
                if let Some((kept, outcome)) = self.running.start(place, task, kept) {
                    self.finish(&kept, outcome.unwrap_or_else(Outcome::from), now);
                }
            }
        }
    }
}

impl<K: Threading> Endpoint for ServerEndpoint<K> {
    fn catch_panics(&mut self, guard: PanicGuard) {
        self.guard = guard;
        self.running.guard = guard;
        self.machine.catch_panics(guard);
    }

    fn set_spawner(&mut self, spawn: Spawner) {
        self.spawner.get_or_insert(spawn);
    }

    fn set_unix_time(&mut self, unix_time: Box<dyn Fn() -> u64 + Send + Sync>) {
        // On a byte stream only states expire.
        if self.handlers.sealing.as_ref().is_some_and(|sealing| sealing.needs_unix_time()) {
            self.default_unix_time(unix_time);
        }
    }

    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, now: Instant) {
        let event = match frame {
            Ok(frame) => self.machine.handle_message(frame, now),
            Err(error) => self.machine.handle_frame_error(error),
        };
        // A closed connection is reported by its own event.
        if let Ok(Some(event)) = event {
            self.handle_event(event, now);
        }
        self.handle_queued_events(now);
    }

    fn handle_eof(&mut self, now: Instant) {
        self.machine.handle_eof();
        self.handle_queued_events(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.expire(now);
        self.handle_queued_events(now);
    }

    fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.advance_clock(now);
        self.take_commands(now);
        for _ in 0..self.running.ready() {
            if let Some((kept, outcome)) = self.running.poll_next() {
                self.finish(&kept, outcome.unwrap_or_else(Outcome::from), now);
            }
        }
        // Takes the commands of handlers that were just polled, and handles the events that these
        // commands and answers caused.
        self.take_commands(now);
        self.handle_queued_events(now);
        self.commands.register(cx.waker());
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        self.machine.transmit(write);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_deadline()
    }

    fn is_congested(&self) -> bool {
        self.machine.is_congested()
    }

    fn is_drained(&self) -> bool {
        self.machine.is_drained()
    }

    fn is_closed(&self) -> bool {
        self.machine.is_closed()
    }

    fn assert_consistent(&self) {
        self.assert_tables_consistent();
    }
}

// ------------------------------------------------------------------ types that serve a connection

/// A type that can serve a connection: an [`Endpoint`], or a [`Server`], which creates one.
pub trait IntoEndpoint {
    /// The type of the endpoint.
    type Endpoint: Endpoint;

    /// Creates the endpoint of one connection; `seed` is a random number, see
    /// [`peer::Server::new`](mcp_sansio::peer::Server::new).
    ///
    /// # Errors
    ///
    /// An item of the server's catalog is invalid, or a state of a handler is missing.
    fn into_endpoint(self, seed: u64) -> Result<Self::Endpoint, CatalogError>;
}

impl<E: Endpoint> IntoEndpoint for E {
    type Endpoint = E;

    fn into_endpoint(self, _: u64) -> Result<E, CatalogError> {
        Ok(self)
    }
}

impl<K: Threading> IntoEndpoint for Server<K> {
    type Endpoint = ServerEndpoint<K>;

    // Nothing is cloned, so that a program with one connection contains no code for cloning.
    fn into_endpoint(self, seed: u64) -> Result<ServerEndpoint<K>, CatalogError> {
        if let Some(problem) = self.problem() {
            return Err(problem);
        }
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(ServerEndpoint::new(self, seed)),
        }
    }
}

impl<K: Threading> IntoEndpoint for &Server<K> {
    type Endpoint = ServerEndpoint<K>;

    fn into_endpoint(self, seed: u64) -> Result<ServerEndpoint<K>, CatalogError> {
        self.endpoint(seed)
    }
}
