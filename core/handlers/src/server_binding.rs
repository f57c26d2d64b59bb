//! What a binding decides for the handlers of a server.

use core::fmt;
use core::future::Future;
use core::time::Duration;

use mcp_sansio::catalog::Catalog;
#[cfg(feature = "http")]
use mcp_sansio::http::Refusal;
use mcp_sansio::peer::server::Session;
use mcp_sansio::peer::{self, CommandError, Request, RequestHandle, ServerMachine};
use mcp_sansio::{Instant, Principal};

use super::context::Command;
use super::executor::{DETACHED, Executor};
use super::kind::Kind;
use super::machines::StreamServer;
use super::questions::Questions;
use super::task::{Handler, Offer, OpenTasks};

/// A server machine, with what its binding decides for handlers. The defaults are those of a byte
/// stream: one client, which is there and known, and one connection, which stays.
pub(super) trait ServerBinding: ServerMachine + fmt::Debug + Sized {
    /// Handlers that go on, where this binding runs them.
    type Running<K: Kind>: RunningHandlers<Self> + fmt::Debug;

    /// Whether clients may be anybody.
    #[cfg(feature = "auth")]
    const IS_HTTP: bool = false;

    fn catalog(&self) -> &Catalog;

    fn edit_catalog(&mut self, edit: impl FnOnce(&mut Catalog), now: Instant);

    /// The legacy session that a request came in.
    fn session_of(&self, request: RequestHandle) -> Option<&Session>;

    /// Who sent a request, where that is known.
    fn principal(&self, _request: RequestHandle) -> Option<&Principal> {
        None
    }

    /// Whether the client of a request reads what is said before its answer.
    fn is_heard(&self, _request: RequestHandle) -> bool {
        true
    }

    /// Whether the sender of a request may have one more handler at work. If not, the request is
    /// refused.
    fn admit_handler(&mut self, _request: &Request<'_>, _now: Instant) -> bool {
        true
    }

    /// Answers a request with questions.
    fn ask(
        &mut self,
        questions: &Questions,
        request: Request<'_>,
        now: Instant,
    ) -> Result<(), CommandError>;

    /// Answers a request with a refusal.
    #[cfg(feature = "http")]
    fn refuse(
        &mut self,
        request: RequestHandle,
        refusal: Refusal,
        now: Instant,
    ) -> Result<(), CommandError> {
        let reject = peer::ServerCommand::Reject { request, error: refusal.error };
        self.apply(reject, now).map(drop)
    }

    /// Closes the connection that carries the messages of a request, where it has one of its own.
    fn release_connection(&mut self, _request: RequestHandle, _retry: Duration) {}

    /// What makes the table of tasks on this machine.
    fn open_tasks(offer: &Offer) -> OpenTasks<Self>;
}

/// The handlers of a server that go on.
pub(super) trait RunningHandlers<M> {
    /// The request whose handler goes on, to make a task of it.
    fn request(&mut self, handle: RequestHandle) -> Option<&Request<'static>>;

    /// Keeps the handler of a request that has become the task in `place`: the place of the request
    /// may be the next one's.
    fn detach(&mut self, handle: RequestHandle, place: u32);

    /// Drops the handler of a request that was cancelled.
    fn cancel(&mut self, machine: &mut M, request: RequestHandle);

    /// Drops the handler of a task that was cancelled.
    fn cancel_task(&mut self, machine: &mut M, handler: Handler);

    /// Drops all handlers: the connection is over.
    fn cancel_all(&mut self);
}

impl ServerBinding for StreamServer {
    type Running<K: Kind> = Executor<K::Task, Command, Request<'static>>;

    fn catalog(&self) -> &Catalog {
        peer::Server::catalog(self)
    }

    fn edit_catalog(&mut self, edit: impl FnOnce(&mut Catalog), _: Instant) {
        self.edit_catalog(edit);
    }

    fn session_of(&self, _: RequestHandle) -> Option<&Session> {
        peer::Server::session(self)
    }

    fn ask(
        &mut self,
        questions: &Questions,
        request: Request<'_>,
        now: Instant,
    ) -> Result<(), CommandError> {
        questions.put(self, request, now)
    }

    fn open_tasks(offer: &Offer) -> OpenTasks<Self> {
        offer.on_stream
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

    fn cancel_task(&mut self, _: &mut StreamServer, handler: Handler) {
        Self::cancel(self, handler.place | DETACHED);
    }

    fn cancel_all(&mut self) {
        self.cancel_all();
    }
}
