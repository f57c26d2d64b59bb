use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::Context;

use mcp_sansio::catalog::{Catalog, CatalogError};
use mcp_sansio::http::server::{
    Admission, NotStored, ReadId, StoreAction, StoredEvent, Transmit, UnservableTool,
};
use mcp_sansio::http::{self, ExchangeId, Principal, Refusal, RequestHead, Response, Status};
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{Event, Request, RequestHandle, Subject};
use mcp_sansio::{Era, Instant};

use super::catalog_edit::{CatalogEdit, ItemHandlers};
use super::context::{Command, Outlet};
use super::dispatch::check_output;
use super::elicitation_ids::ElicitationIds;
use super::http_work::{Attended, Finished, Running, Work};
use super::kind::{Kind, Shared};
use super::machines::HttpServerMachine;
use super::mailbox::Mailbox;
use super::panics::{PanicGuard, Panicked};
use super::remote::Remote;
use super::reply::Outcome;
use super::server::{Handlers, Server};
use super::task::{Begun, Machine, Report, Tasks, is_of_tasks};

/// A server on HTTP with its handlers: what an adapter drives, for all its clients.
///
/// It is meant to stand behind a lock that many exchanges share, so the work of handlers is done
/// outside of it: [`handle_request`](Self::handle_request) gives a [`Work`] to run, whose
/// [`Finished`] goes to [`finish`](Self::finish).
///
/// After each call of a method that takes the time, an adapter deals with
/// [`poll_work`](Self::poll_work) and wakes whoever serves the exchanges that
/// [`poll_ready`](Self::poll_ready) names.
#[derive(Debug)]
pub struct HttpServer<K: Kind = Shared> {
    pub(super) machine: HttpServerMachine,
    pub(super) handlers: Arc<Handlers<K>>,
    items: ItemHandlers<K>,
    outlet: Outlet,
    /// What handlers run in.
    pub(super) guard: PanicGuard,
    /// Handlers that go on, to be told when nobody waits for them any more.
    pub(super) running: BTreeMap<RequestHandle, Attended>,
    pub(super) table: Option<Box<dyn Tasks>>,
    elicitations: ElicitationIds,
    /// When something last came in, for what that led to and nobody has looked at.
    latest: Instant,
    /// The checks of tokens that are under way: each has a share.
    #[cfg(feature = "auth")]
    pub(super) checks: Arc<()>,
}

/// What an event asks for.
enum Dispatched<'f, K: Kind> {
    /// A handler has to work on a request.
    Work(Work<'f, K>),
    /// A request is about a task.
    OfTask(Request<'f>),
}

/// Why a server cannot be put on HTTP. The caller's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpServerError {
    /// Something offered has a bad name, or the name of another.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A tool has annotations that clients would have to refuse.
    #[error(transparent)]
    Tool(#[from] UnservableTool),
}

impl<K: Kind> HttpServer<K> {
    pub(super) fn new(
        server: &Server<K>,
        options: http::ServerOptions,
        secret: [u8; 32],
        seed: u64,
    ) -> Result<Self, HttpServerError> {
        if let Some(problem) = &server.problem {
            return Err(problem.clone().into());
        }
        // All clients share it: those of one connection, and one for each exchange beside it.
        let room = server.room().shared_by(options.limits_ref().exchanges_max);
        let mut handlers = Arc::clone(&server.handlers);
        if let Some(sealing) = handlers.sealing.by_default(&secret) {
            Arc::make_mut(&mut handlers).sealing = sealing;
        }
        Ok(Self {
            machine: server.http_machine(options, secret, seed)?,
            handlers,
            items: Arc::clone(&server.items),
            outlet: Arc::new(Mailbox::new(room)),
            guard: PanicGuard::NONE,
            running: BTreeMap::new(),
            table: server.open_tasks(),
            elicitations: ElicitationIds::from_secret(&secret),
            latest: Instant::ZERO,
            #[cfg(feature = "auth")]
            checks: Arc::new(()),
        })
    }

    /// The machine, to look at.
    #[must_use]
    pub fn machine(&self) -> &http::Server {
        &self.machine
    }

    /// Runs the application's functions in `guard` from here on: handlers, checks of tokens, edits
    /// of the catalog and observers. Called before anything else, where the adapter can catch a
    /// panic: see [`Endpoint::catch_panics`](super::Endpoint::catch_panics).
    pub const fn catch_panics(&mut self, guard: PanicGuard) {
        self.guard = guard;
        self.machine.catch_panics(guard);
    }

    /// A way to all its clients from outside.
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote::new(Arc::clone(&self.outlet))
    }

    // ------------------------------------------------------------------ from the network

    /// Judges the head of a request: see [`http::Server::admit`].
    ///
    /// # Errors
    ///
    /// The request is refused with this response.
    pub fn admit(&self, head: &RequestHead<'_>) -> Result<Admission, Response> {
        self.machine.admit(head)
    }

    /// The response to a request whose body is longer than it may be.
    #[must_use]
    pub fn body_too_long(&self) -> Response {
        self.machine.body_too_long()
    }

    /// The response to a request whose body is one too many for what the others leave.
    #[must_use]
    pub fn bodies_too_many(&self) -> Response {
        self.machine.bodies_too_many()
    }

    /// The response to a request whose body does not come in time.
    #[must_use]
    pub fn body_too_slow(&self) -> Response {
        self.machine.body_too_slow()
    }

    /// Takes a whole request: see [`http::Server::handle_request`]. Where a handler has to work on
    /// it, the work is returned.
    pub fn handle_request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        principal: Option<&Principal>,
        now: Instant,
    ) -> (ExchangeId, Option<Work<'f, K>>) {
        // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-012],
        // MCP 2025-11-25 security-best-practices#session-hijacking [SEC-011]: who drives this may
        // have forgotten to ask.
        #[cfg(feature = "auth")]
        if let Some(exchange) = self.refuse_unchecked(head, body, now) {
            return (exchange, None);
        }
        let (exchange, event) = self.machine.handle_request(head, body, principal, now);
        (exchange, self.take_up(exchange, event, now))
    }

    /// Begins with what a request brought, in the exchange that it came in.
    pub(super) fn take_up<'f>(
        &mut self,
        exchange: ExchangeId,
        event: Option<Event<'f>>,
        now: Instant,
    ) -> Option<Work<'f, K>> {
        self.latest = now;
        let event = event?;
        // An observer that panics takes with it the only one who knows of the exchange.
        let observed = Observed { server: self, exchange, now };
        let work = match observed.server.dispatch(event, now) {
            Some(Dispatched::Work(work)) => Some(work),
            Some(Dispatched::OfTask(request)) => {
                observed.server.serve_task(&request, now);
                None
            }
            None => None,
        };
        core::mem::forget(observed);
        work
    }

    /// The client of an exchange has gone: see [`http::Server::handle_disconnect`].
    pub fn handle_disconnect(&mut self, exchange: ExchangeId, now: Instant) {
        self.latest = now;
        self.machine.handle_disconnect(exchange, now);
    }

    /// Does what is due at `now`. Extra calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.latest = now;
        self.machine.handle_timeout(now);
        while let Some(handler) = self.table.as_mut().and_then(|table| table.expire(now)) {
            self.drop_handler(handler);
        }
        self.tell_changes(now);
    }

    /// Takes the events that a read found: see [`http::Server::handle_stored`].
    pub fn handle_stored(
        &mut self,
        read: ReadId,
        events: Result<Vec<StoredEvent>, NotStored>,
        now: Instant,
    ) {
        self.machine.handle_stored(read, events, now);
    }

    /// Takes no new request from here on: see [`http::Server::close`].
    pub fn close(&mut self, now: Instant) {
        self.machine.close(now);
    }

    // ------------------------------------------------------------------ from handlers

    /// Takes note of a handler that goes on, so that it learns when nobody waits for it any more.
    pub fn attend(&mut self, running: &Running<K>) {
        let Some(request) = &running.request else { return };
        let handle = request.handle;
        let table = self.table.as_ref();
        let of_task = table.is_some_and(|table| table.is_working(handle));
        if !of_task && !self.machine.is_due(handle) {
            running.ticket.cancel();
            return;
        }
        let request = table.map(|_| request.clone());
        // Of a request there is one handler at a time.
        self.end_running(handle);
        let caller = self.machine.begin_handler(handle);
        let attended = Attended { ticket: Arc::clone(&running.ticket), request, caller };
        self.running.insert(handle, attended);
        if self.table.as_mut().is_some_and(|table| table.take_wish(handle)) {
            // Now there is a use for it. Nobody is left to take it where the server is gone.
            let _sent = self.outlet.send(Command::RunAsTask(handle));
        }
    }

    /// Takes what the handler of a request came to.
    pub fn finish(&mut self, answer: Finished<'_>, now: Instant) {
        let Finished { request, mut outcome } = answer;
        let handle = request.handle;
        if let Outcome::InputRequired(questions) = &mut outcome {
            questions.name_elicitations(self.elicitations, &request);
        }
        self.end_running(handle);
        // What the handler sent goes before its answer.
        self.take_commands(now);
        let Some(table) = &mut self.table else { return self.answer(request, outcome, now) };
        if table.is_working(handle) {
            let check = || check_output(self.machine.catalog(), &request, outcome);
            outcome = self.guard.run(check).unwrap_or_else(Outcome::from);
        }
        let wished = table.take_wish(handle);
        match table.settle(handle, outcome, now) {
            None => {}
            // It waits for answers from here on: now there is a use for a task.
            Some(outcome @ Outcome::InputRequired(_)) if wished => {
                let request = request.into_owned();
                if !self.create_task(&request, now) {
                    return self.answer(request, outcome, now);
                }
                if let Some(table) = &mut self.table {
                    let _taken = table.settle(handle, outcome, now);
                }
            }
            Some(outcome) => self.answer(request, outcome, now),
        }
        self.tell_changes(now);
    }

    pub(super) fn answer(&mut self, request: Request<'_>, outcome: Outcome, now: Instant) {
        let handle = request.handle;
        let principal = self.machine.principal(handle);
        let outcome = self.handlers.sealing.close(&request, principal, outcome, now);
        // A request that was cancelled meanwhile, or an answer that could not be written, has been
        // dealt with by the machine.
        let _answered = match outcome {
            Outcome::Result(body) => self.machine.respond(handle, &body, now),
            Outcome::Error(error) => self.machine.reject(handle, error, now),
            Outcome::InputRequired(required) => self.machine.require_input(request, &required, now),
            Outcome::Refused(refusal) => self.machine.refuse(handle, *refusal, now),
        };
    }

    /// Answers a request whose handler could not be run, for want of a thread say, with an internal
    /// error.
    pub fn fail(&mut self, request: RequestHandle, now: Instant) {
        self.end_running(request);
        if let Some(table) = &mut self.table {
            table.take_wish(request);
        }
        let error = ErrorObject::from(Panicked);
        if let Some(table) = &mut self.table
            && table.settle(request, Outcome::Error(error.clone()), now).is_none()
        {
            return self.tell_changes(now);
        }
        // One that was cancelled meanwhile has been dealt with by the machine.
        let _answered = self.machine.reject(request, error, now);
    }

    /// Takes what handlers and [`Remote`]s want to send. The waker in `cx` is woken when there is
    /// more.
    pub fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.take_commands(now);
        self.tell_changes(now);
        self.outlet.register(cx.waker());
    }

    // ------------------------------------------------------------------ outputs

    /// Work that comes from no new request: one whose questions are answered goes on.
    #[must_use]
    pub fn poll_work(&mut self) -> Option<Work<'static, K>> {
        let now = self.latest;
        // What tasks ask may come back at once, where it cannot be asked.
        self.tell_changes(now);
        while let Some(event) = self.machine.poll_event() {
            match self.dispatch(event, now) {
                Some(Dispatched::Work(work)) => return Some(work),
                // The questions of a task are answered.
                Some(Dispatched::OfTask(request)) => self.serve_task(&request, now),
                None => {}
            }
        }
        let (request, principal) = self.table.as_mut()?.poll_resumed()?;
        Some(Work { sealed: false, ..self.work(request, principal, now) })
    }

    /// An exchange with something new to send: see [`http::Server::poll_ready`].
    #[must_use]
    pub fn poll_ready(&mut self) -> Option<ExchangeId> {
        self.machine.poll_ready()
    }

    /// What to send next on an exchange: see [`http::Server::poll_transmit`].
    pub fn poll_transmit(&mut self, exchange: ExchangeId, now: Instant) -> Option<Transmit<'_>> {
        self.machine.poll_transmit(exchange, now)
    }

    /// Whether an exchange is to be broken off: see [`http::Server::is_aborted`].
    #[must_use]
    pub fn is_aborted(&self, exchange: ExchangeId) -> bool {
        self.machine.is_aborted(exchange)
    }

    /// What the external store of events is to do next: see [`http::Server::poll_store`].
    #[must_use]
    pub fn poll_store(&mut self) -> Option<StoreAction> {
        self.machine.poll_store()
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let table = self.table.as_ref().and_then(|table| table.poll_timeout());
        [self.machine.poll_timeout(), table].into_iter().flatten().min()
    }

    /// Whether the server is closing and no response is under way.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.machine.is_drained()
    }

    fn dispatch<'f>(&mut self, event: Event<'f>, now: Instant) -> Option<Dispatched<'f, K>> {
        if !self.handlers.show(&event, self.guard)
            && let Event::Request(request) = event
        {
            self.answer(request, Panicked.into(), now);
            return None;
        }
        match event {
            Event::Request(request) if is_of_tasks(&request) && self.table.is_some() => {
                Some(Dispatched::OfTask(request))
            }
            Event::Request(request) if !self.has_room_for(&request) => {
                let _answered = self.machine.refuse(request.handle, too_many_handlers(), now);
                None
            }
            Event::Request(request) if self.begin_task(&request, now) == Begun::Refused => None,
            Event::Request(request) => {
                let principal = self.machine.principal(request.handle).cloned();
                Some(Dispatched::Work(self.work(request, principal, now)))
            }
            Event::Cancelled(cancelled) => {
                if let Subject::Request(handle) = cancelled.subject {
                    if let Some(table) = &mut self.table {
                        table.forget(handle);
                    }
                    if let Some(attended) = self.end_running(handle) {
                        attended.give_up();
                    }
                }
                None
            }
            _ => None,
        }
    }

    /// Whether the caller of a request may have one more handler at work.
    fn has_room_for(&self, request: &Request<'_>) -> bool {
        // A legacy request whose questions are answered goes on: it was accepted before.
        let goes_on = request.revision.era() == Era::Legacy && request.inputs.responses().is_some();
        goes_on || self.machine.has_room_for_handler(request.handle)
    }

    /// A handler that went on has ended, or nobody waits for it any more.
    pub(super) fn end_running(&mut self, handle: RequestHandle) -> Option<Attended> {
        let attended = self.running.remove(&handle)?;
        if let Some(caller) = attended.caller {
            self.machine.end_handler(caller);
        }
        Some(attended)
    }

    fn work<'f>(
        &self,
        request: Request<'f>,
        principal: Option<Principal>,
        now: Instant,
    ) -> Work<'f, K> {
        let table = self.table.as_ref();
        let is_task = table.is_some_and(|table| table.is_working(request.handle));
        let (catalog, asked) = (self.machine.catalog(), (&request, is_task));
        let function = self.handlers.prepare(&self.items, catalog, asked, self.guard).cloned();
        Work {
            handlers: Arc::clone(&self.handlers),
            function,
            outlet: Arc::clone(&self.outlet),
            principal,
            is_task,
            request,
            tasks: table.is_some(),
            sealed: true,
            now,
            guard: self.guard,
        }
    }

    fn take_commands(&mut self, now: Instant) {
        let guard = self.guard;
        // As many as there are now: a thread that goes on sending does not keep the driver.
        for _ in 0..self.outlet.commands() {
            let Some(command) = self.outlet.take_command() else { return };
            match command {
                Command::Progress { request, progress, total, message } => {
                    let message = message.as_deref();
                    let report = Report { progress, total, message };
                    let on = Machine::Http(&mut self.machine);
                    let table = self.table.as_mut();
                    if !table.is_some_and(|table| table.report(on, request, report, now)) {
                        self.machine.progress(request, progress, total, message, now);
                    }
                }
                Command::Log { request, level, logger, data } => {
                    // The data is JSON already, so it can be written.
                    let _sent = self.machine.log(request, level, logger.as_deref(), &data, now);
                }
                Command::ResourceUpdated { uri, .. } => self.machine.resource_updated(&uri, now),
                Command::EditCatalog { edit, .. } => {
                    let items = &mut self.items;
                    let edit = |catalog: &mut Catalog| {
                        let edited = CatalogEdit::run(catalog, guard, edit);
                        edited.apply::<K>(items, catalog, K::of_shared);
                    };
                    self.machine.edit_catalog(edit, now);
                }
                Command::ReleaseConnection { request, retry } => {
                    self.machine.release_connection(request, retry);
                }
                Command::RunAsTask(request) => self.run_as_task(request, now),
                Command::Close => self.machine.close(now),
            }
        }
    }
}

impl<K: Kind> Drop for HttpServer<K> {
    fn drop(&mut self) {
        self.outlet.close();
        self.running.values().for_each(Attended::give_up);
    }
}

/// Ends an exchange that is left in the middle of its beginning.
struct Observed<'a, K: Kind> {
    server: &'a mut HttpServer<K>,
    exchange: ExchangeId,
    now: Instant,
}

impl<K: Kind> Drop for Observed<'_, K> {
    fn drop(&mut self) {
        self.server.machine.handle_disconnect(self.exchange, self.now);
    }
}

/// The refusal for a caller that has as many handlers running as one may. It will pass.
fn too_many_handlers() -> Refusal {
    let error = ErrorObject::invalid_request("too many of your requests are being worked on");
    let mut refusal = Refusal::new(Status::TOO_MANY_REQUESTS, error);
    refusal.retry_after = Some(10);
    refusal
}
