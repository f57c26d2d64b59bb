use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};

use spin::Mutex;

use crate::Instant;
use crate::catalog::{Catalog, CatalogError};
use crate::http::server::{Admission, Transmit, UnservableTool};
use crate::http::{self, ExchangeId, Principal, RequestHead, Response};
use crate::jsonrpc::ErrorObject;
use crate::peer::{Event, Request, RequestHandle, Subject};

use super::context::{Command, Outlet, Received};
use super::dispatch::{Dispatch, keep};
use super::kind::{Kind, Shared, Step};
use super::mailbox::Mailbox;
use super::remote::Remote;
use super::reply::Outcome;
use super::server::{Handlers, Server};

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
    machine: http::Server,
    handlers: Arc<Handlers<K>>,
    outlet: Outlet,
    /// Handlers that go on, to be told when nobody waits for them any more.
    running: BTreeMap<RequestHandle, Arc<Ticket>>,
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

/// A request and the handler that it goes to: to be run outside of any lock.
#[derive(Debug)]
pub struct Work<'f, K: Kind = Shared> {
    request: Request<'f>,
    handlers: Arc<Handlers<K>>,
    catalog: Arc<Catalog>,
    outlet: Outlet,
    principal: Option<Principal>,
}

/// What running a [`Work`] comes to.
#[derive(Debug)]
pub enum Ran<'f, K: Kind = Shared> {
    /// The answer, for [`HttpServer::finish`].
    Done(Finished<'f>),
    /// The handler goes on: give it to [`HttpServer::attend`], then poll it.
    Running(Running<K>),
}

/// What a handler came to.
#[derive(Debug)]
pub struct Finished<'f> {
    request: Request<'f>,
    outcome: Outcome,
}

/// A handler that goes on. It is done with `None` when nobody waits for it any more.
///
/// To drop it is to give up without an answer; the request then waits until its client gives up.
pub struct Running<K: Kind = Shared> {
    /// `None` once it is done.
    task: Option<K::Task>,
    request: Option<Request<'static>>,
    tool: Option<String>,
    handlers: Arc<Handlers<K>>,
    catalog: Arc<Catalog>,
    ticket: Arc<Ticket>,
}

/// Tells a handler that nobody waits for it any more.
#[derive(Debug, Default)]
struct Ticket {
    cancelled: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Ticket {
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
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
        Ok(Self {
            machine: http::Server::new(server.peer_options(), options, secret, seed)?,
            handlers: Arc::clone(&server.handlers),
            outlet: Arc::new(Mailbox::new()),
            running: BTreeMap::new(),
        })
    }

    /// The machine, to look at.
    #[must_use]
    pub const fn machine(&self) -> &http::Server {
        &self.machine
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
        let (exchange, event) = self.machine.handle_request(head, body, principal, now);
        let Some(event) = event else { return (exchange, None) };
        // An observer that panics takes with it the only one who knows of the exchange.
        let observed = Observed { server: self, exchange, now };
        let work = observed.server.dispatch(event);
        core::mem::forget(observed);
        (exchange, work)
    }

    /// The client of an exchange has gone: see [`http::Server::handle_disconnect`].
    pub fn handle_disconnect(&mut self, exchange: ExchangeId, now: Instant) {
        self.machine.handle_disconnect(exchange, now);
    }

    /// Does what is due at `now`. Extra calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
    }

    /// Takes no new request from here on: see [`http::Server::close`].
    pub fn close(&mut self, now: Instant) {
        self.machine.close(now);
    }

    // ------------------------------------------------------------------ from handlers

    /// Takes note of a handler that goes on, so that it learns when nobody waits for it any more.
    pub fn attend(&mut self, running: &Running<K>) {
        let Some(request) = &running.request else { return };
        if self.machine.is_due(request.handle) {
            self.running.insert(request.handle, Arc::clone(&running.ticket));
        } else {
            running.ticket.cancel();
        }
    }

    /// Answers a request with what its handler came to.
    pub fn finish(&mut self, answer: Finished<'_>, now: Instant) {
        let Finished { request, outcome } = answer;
        let handle = request.handle;
        self.running.remove(&handle);
        // What the handler sent goes before its answer.
        self.take_commands(now);
        // A request that was cancelled meanwhile, or an answer that could not be written, has been
        // dealt with by the machine.
        let _answered = match outcome {
            Outcome::Result(body) => self.machine.respond(handle, &body, now),
            Outcome::Error(error) => self.machine.reject(handle, error, now),
            Outcome::InputRequired(required) => self.machine.require_input(request, &required, now),
        };
    }

    /// Answers a request whose handler came to nothing, a panic say, with an internal error.
    pub fn fail(&mut self, request: RequestHandle, now: Instant) {
        self.running.remove(&request);
        // One that was cancelled meanwhile has been dealt with by the machine.
        let _answered = self.machine.reject(request, ErrorObject::internal(HANDLER_FAILED), now);
    }

    /// Takes what handlers and [`Remote`]s want to send. The waker in `cx` is woken when there is
    /// more.
    pub fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.take_commands(now);
        self.outlet.register(cx.waker());
    }

    // ------------------------------------------------------------------ outputs

    /// Work that comes from no new request: one whose questions are answered goes on.
    #[must_use]
    pub fn poll_work(&mut self) -> Option<Work<'static, K>> {
        while let Some(event) = self.machine.poll_event() {
            if let Some(work) = self.dispatch(event) {
                return Some(work);
            }
        }
        None
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

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    /// Whether the server is closing and no response is under way.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.machine.is_drained()
    }

    fn dispatch<'f>(&mut self, event: Event<'f>) -> Option<Work<'f, K>> {
        for observer in &self.handlers.observers {
            observer(&event);
        }
        match event {
            Event::Request(request) => Some(Work {
                handlers: Arc::clone(&self.handlers),
                catalog: self.machine.shared_catalog(),
                outlet: Arc::clone(&self.outlet),
                principal: self.machine.principal(request.handle).cloned(),
                request,
            }),
            Event::Cancelled(cancelled) => {
                if let Subject::Request(handle) = cancelled.subject
                    && let Some(ticket) = self.running.remove(&handle)
                {
                    ticket.cancel();
                }
                None
            }
            _ => None,
        }
    }

    fn take_commands(&mut self, now: Instant) {
        // As many as there are now: a thread that goes on sending does not keep the driver.
        for _ in 0..self.outlet.commands() {
            let Some(command) = self.outlet.take_command() else { return };
            match command {
                Command::Progress { request, progress, total, message } => {
                    self.machine.progress(request, progress, total, message.as_deref(), now);
                }
                Command::Log { request, level, logger, data } => {
                    // The data is JSON already, so it can be written.
                    let _sent = self.machine.log(request, level, logger.as_deref(), &data, now);
                }
                Command::ResourceUpdated(uri) => self.machine.resource_updated(&uri, now),
                Command::EditCatalog(edit) => self.machine.edit_catalog(edit, now),
                Command::ReleaseConnection { request, retry } => {
                    self.machine.release_connection(request, retry);
                }
                Command::Close => self.machine.close(now),
            }
        }
    }
}

impl<K: Kind> Drop for HttpServer<K> {
    fn drop(&mut self) {
        self.outlet.close();
        for ticket in self.running.values() {
            ticket.cancel();
        }
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

/// What a client is told of a handler that panicked: nothing of what is inside.
const HANDLER_FAILED: &str = "the handler did not finish";

impl<'f, K: Kind> Work<'f, K> {
    /// The request, to name it to [`HttpServer::fail`].
    #[must_use]
    pub const fn handle(&self) -> RequestHandle {
        self.request.handle
    }

    /// Calls the handler. A plain one does its work in here.
    #[must_use]
    pub fn run(self) -> Ran<'f, K> {
        let Self { request, handlers, catalog, outlet, principal } = self;
        let dispatch = Dispatch { handlers: &*handlers, catalog: &catalog };
        let (function, variables) = match dispatch.find(&request) {
            Ok(found) => found,
            Err(outcome) => return Ran::Done(Finished { request, outcome: *outcome }),
        };
        let tool = dispatch.described_tool(&request);
        let received = Received {
            outlet: Some(&outlet),
            variables,
            spawner: handlers.spawner.as_ref(),
            principal: principal.as_ref(),
            ..Received::new(&request)
        };
        match function(received) {
            Step::Done(outcome) => {
                let outcome = checked(&handlers, &catalog, tool.as_deref(), outcome);
                Ran::Done(Finished { request, outcome })
            }
            Step::Running(task) => Ran::Running(Running {
                task: Some(task),
                request: Some(keep(request)),
                tool,
                handlers,
                catalog,
                ticket: Arc::default(),
            }),
        }
    }
}

impl<K: Kind> fmt::Debug for Running<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("request", &self.request).finish_non_exhaustive()
    }
}

impl<K: Kind> Future for Running<K> {
    type Output = Option<Finished<'static>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let running = &mut *self;
        let Some(task) = &mut running.task else { return Poll::Ready(None) };
        {
            let mut waker = running.ticket.waker.lock();
            if !waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
        }
        // After the waker is there: whoever cancels from here on wakes it.
        if running.ticket.cancelled.load(Ordering::Acquire) {
            running.task = None;
            return Poll::Ready(None);
        }
        match Pin::new(task).poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(outcome) => {
                running.task = None;
                let Self { handlers, catalog, tool, .. } = &*running;
                let outcome = checked(handlers, catalog, tool.as_deref(), outcome);
                Poll::Ready(running.request.take().map(|request| Finished { request, outcome }))
            }
        }
    }
}

fn checked<K: Kind>(
    handlers: &Handlers<K>,
    catalog: &Catalog,
    tool: Option<&str>,
    outcome: Outcome,
) -> Outcome {
    match tool {
        Some(tool) => Dispatch { handlers, catalog }.check_output(tool, outcome),
        None => outcome,
    }
}
