//! The differences between the transports for the handlers of a server.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::time::Duration;

use mcp_sansio::catalog::{Catalog, Lists};
use mcp_sansio::peer::{
    self, CommandError, HttpRejection, Request, RequestHandle, ServerMachine, ServerSession,
};
use mcp_sansio::{Instant, SessionKey};

use super::ask::InputRequired;
use super::executor::{DETACHED, Executor};
use super::mailbox::Command;
use super::reply::Outcome;
use super::server_endpoint::StreamServer;
use super::server_item::ItemHandlers;
use super::task::{OpenTasks, TaskFactory, TaskHandler, TaskSharing};
use super::threading::Threading;

/// A server machine and the behaviour of its transport towards handlers. The defaults fit a byte
/// stream, which has one client and one connection.
pub(super) trait ServerBinding: ServerMachine + fmt::Debug + Sized {
    /// The running handlers: the transport determines where they are polled.
    type Running<K: Threading>: RunningHandlers<Self> + fmt::Debug;

    fn catalog(&self) -> &Catalog;

    /// Edits the catalog together with the handlers of its items.
    fn edit_items<K: Threading>(
        &mut self,
        items: &mut ItemHandlers<K>,
        edit: impl FnOnce(&mut Catalog, &mut ItemHandlers<K>),
        now: Instant,
    );

    /// Returns the legacy session of a request.
    fn session_of(&self, request: RequestHandle) -> Option<&ServerSession>;

    /// Returns the lists of the server as the sender of a request sees them.
    fn lists_of(&self, request: &Request<'_>) -> Option<Lists>;

    /// Whether the client of a request reads messages before its answer.
    fn has_open_stream(&self, _request: RequestHandle) -> bool {
        true
    }

    /// Returns whether the sender of a request may have another running handler. Otherwise refuses
    /// the request.
    fn admit_handler(&mut self, _request: &Request<'_>, _now: Instant) -> bool {
        true
    }

    /// Answers a request with input requests.
    fn ask(
        &mut self,
        questions: &InputRequired,
        request: &Request<'_>,
        now: Instant,
    ) -> Result<(), CommandError>;

    /// Answers a request with a refusal.
    fn refuse(
        &mut self,
        request: RequestHandle,
        refusal: HttpRejection,
        now: Instant,
    ) -> Result<(), CommandError> {
        self.reject(request, refusal.error, now)
    }

    /// Closes the connection that carries the messages of a request, if it has its own.
    fn release_connection(&mut self, _request: RequestHandle, _retry: Duration) {}

    /// Withdraws the input requests of a request, which is still pending.
    fn withdraw(&mut self, request: RequestHandle, now: Instant) {
        self.withdraw_input(request, now);
    }

    /// Returns the machine if it shares tasks with other nodes.
    fn sharing(&mut self) -> Option<&mut dyn TaskSharing> {
        None
    }

    /// Returns the constructor of the task table for this machine.
    fn open_tasks(factory: &TaskFactory) -> OpenTasks<Self>;
}

/// The running handlers of a server.
pub(super) trait RunningHandlers<M> {
    /// Returns the request of a running handler, to create a task from.
    fn request(&mut self, handle: RequestHandle) -> Option<&Request<'static>>;

    /// Separates a handler from its request, which was answered with the task in `place`.
    fn detach(&mut self, handle: RequestHandle, place: u32);

    /// Drops the handler of a request that was cancelled.
    fn cancel(&mut self, machine: &mut M, request: RequestHandle);

    /// Drops the handler of a task that was cancelled.
    fn cancel_task(&mut self, machine: &mut M, handler: TaskHandler);

    /// Drops all handlers: the connection is over.
    fn cancel_all(&mut self);

    /// Checks that each handler works on a request or on a task, whose slot `task_of` returns.
    fn assert_consistent(&self, machine: &M, task_of: impl Fn(RequestHandle) -> Option<u32>);
}

impl ServerBinding for StreamServer {
    type Running<K: Threading> = Executor<K::Future<Outcome>, Command, Request<'static>>;

    fn catalog(&self) -> &Catalog {
        peer::Server::catalog(self)
    }

    fn edit_items<K: Threading>(
        &mut self,
        items: &mut ItemHandlers<K>,
        edit: impl FnOnce(&mut Catalog, &mut ItemHandlers<K>),
        _: Instant,
    ) {
        let own = self.session_key();
        self.edit_catalog(|catalog| {
            edit(catalog, items);
            // An edit of all connections adds the items of other sessions as well.
            remove_sessions(catalog, items, |session| session != own);
        });
    }

    fn session_of(&self, _: RequestHandle) -> Option<&ServerSession> {
        peer::Server::session(self)
    }

    fn lists_of(&self, request: &Request<'_>) -> Option<Lists> {
        Some(peer::Server::lists_of(self, request))
    }

    fn ask(
        &mut self,
        questions: &InputRequired,
        request: &Request<'_>,
        now: Instant,
    ) -> Result<(), CommandError> {
        questions.put(self, request, now)
    }

    fn open_tasks(factory: &TaskFactory) -> OpenTasks<Self> {
        factory.on_stream
    }
}

/// Removes the items that are for sessions which `is_over`, with their handlers.
pub(super) fn remove_sessions<K: Threading>(
    catalog: &mut Catalog,
    items: &mut ItemHandlers<K>,
    is_over: impl Fn(SessionKey) -> bool,
) {
    let over: Vec<_> = catalog.sessions().filter(|session| is_over(*session)).collect();
    let removed = over.into_iter().filter(|session| catalog.remove_session(*session)).count();
    if removed > 0 {
        Arc::make_mut(items).prune(catalog);
    }
}

impl<F, C> RunningHandlers<StreamServer> for Executor<F, C, Request<'static>>
where
    F: Future + Unpin,
    C: Send + 'static,
{
    fn request(&mut self, handle: RequestHandle) -> Option<&Request<'static>> {
        self.get(handle.slot()).filter(|kept| kept.handle == handle)
    }

    fn detach(&mut self, handle: RequestHandle, place: u32) {
        self.relocate(handle.slot(), place | DETACHED);
    }

    fn cancel(&mut self, _: &mut StreamServer, request: RequestHandle) {
        Self::cancel(self, request.slot());
    }

    fn cancel_task(&mut self, _: &mut StreamServer, handler: TaskHandler) {
        Self::cancel(self, handler.place | DETACHED);
    }

    fn cancel_all(&mut self) {
        self.cancel_all();
    }

    fn assert_consistent(
        &self,
        machine: &StreamServer,
        task_of: impl Fn(RequestHandle) -> Option<u32>,
    ) {
        for (place, request) in self.running() {
            let handle = request.handle;
            let is_at = match task_of(handle) {
                Some(task) => place == task | DETACHED,
                None => place == handle.slot() && machine.id_of(handle).is_some(),
            };
            assert!(is_at, "a handler whose request has ended: {handle:?}");
        }
    }
}
