use core::fmt;

use crate::handler::reply::Outcome;
use crate::peer::{Request, RequestHandle, Server};
use crate::protocol::{CreateTaskResult, TaskStatusParams};
use crate::{Instant, Principal};

/// The handler of a task, by its request and by its place among all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::handler) struct Handler {
    pub(in crate::handler) request: RequestHandle,
    pub(in crate::handler) place: u32,
}

/// What becomes of a request about a task.
#[derive(Debug)]
pub(in crate::handler) struct Served {
    pub(in crate::handler) outcome: Outcome,
    /// A handler that nobody waits for any more.
    pub(in crate::handler) dropped: Option<Handler>,
}

/// The tasks of a server, as its endpoints see them.
///
/// A trait, so that nothing of tasks ends up in the image of a device whose server has none: only
/// [`Server::tasks`](crate::handler::Server::tasks) names what is behind it.
pub(in crate::handler) trait Tasks: fmt::Debug + Send + Sync {
    /// Keeps that the handler of a request wants to be a task, before there is anything to wait
    /// for.
    fn wish(&mut self, request: RequestHandle);

    /// Forgets what the handler of a request wanted; whether that was to be a task.
    fn take_wish(&mut self, request: RequestHandle) -> bool;

    /// Makes a task of a request; `None` where there are too many. From here on `tasks/get` finds
    /// it.
    fn create(
        &mut self,
        request: Request<'static>,
        principal: Option<Principal>,
        now: Instant,
    ) -> Option<CreateTaskResult>;

    /// Makes a task of a request of `server`, and answers it so; whether there was room for one
    /// more.
    // MCP 2026-07-28 ext-tasks:tasks#task-creation [TASK-029]: first the task, then the answer.
    fn create_on(&mut self, server: &mut Server, request: &Request<'static>, now: Instant) -> bool {
        let Some(created) = self.create(request.clone(), None, now) else { return false };
        // That a client is gone meanwhile is no reason to give up its task.
        let _answered = server.respond(request.handle, &created);
        true
    }

    /// Takes what the handler of a request came to; gives it back where the request is not a task,
    /// so that it is answered with it.
    fn settle(&mut self, request: RequestHandle, outcome: Outcome, now: Instant)
    -> Option<Outcome>;

    /// Keeps what a handler says of how far it is; whether the request is a task's.
    fn describe(&mut self, request: RequestHandle, message: Option<&str>, now: Instant) -> bool;

    /// The place of the task that a request has become.
    fn place_of(&self, request: RequestHandle) -> Option<u32>;

    /// Whether a request has become a task that is not over.
    #[cfg(feature = "http")]
    fn is_working(&self, request: RequestHandle) -> bool;

    /// A request whose handler is to be called again, and whose it is.
    fn poll_resumed(&mut self) -> Option<(Request<'static>, Option<Principal>)>;

    /// The status of a task that has changed, and whom it concerns.
    fn poll_change(&mut self) -> Option<(TaskStatusParams, Option<Principal>)>;

    /// Has `server` tell its client of tasks whose status has changed.
    fn tell_changes(&mut self, server: &mut Server) {
        while let Some((status, _)) = self.poll_change() {
            server.task_changed(&status);
        }
    }

    /// When the next task is given up.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Gives up one task whose time is over; its handler, if it is at work, is to be dropped.
    fn expire(&mut self, now: Instant) -> Option<Handler>;

    /// Answers a request about a task, at once.
    fn serve(
        &mut self,
        request: &Request<'_>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Served;
}
