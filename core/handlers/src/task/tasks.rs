use core::fmt;

use mcp_sansio::peer::{Request, RequestHandle};
use mcp_sansio::{Instant, Principal};

use crate::reply::Outcome;

/// The handler of a task, by its request and by its place among all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskHandler {
    pub(crate) request: RequestHandle,
    pub(crate) place: u32,
}

/// What becomes of a request about a task.
#[derive(Debug)]
pub(crate) struct TaskResponse {
    /// `None` of one that waits, or has its answer.
    pub(crate) outcome: Option<Outcome>,
    /// A handler that nobody waits for any more.
    pub(crate) dropped: Option<TaskHandler>,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStart {
    /// Nothing: it does not ask to be a task.
    Call,
    /// It is a task, and answered so.
    Task,
    /// It asks for what it cannot have, and is answered so.
    Refused,
}

/// What a handler says of how far it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgressReport<'r> {
    pub(crate) progress: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<&'r str>,
}

/// The tasks of a server, as its endpoint on a machine of type `M` sees them.
///
/// A trait, so that nothing of tasks ends up in the image of a device whose server has none: only
/// [`Server::tasks`](crate::Server::tasks) names what is behind it.
pub(crate) trait Tasks<M>: fmt::Debug + Send + Sync {
    /// Keeps that the handler of a request wants to be a task, before there is anything to wait
    /// for.
    fn request_task(&mut self, request: RequestHandle);

    /// Forgets what the handler of a request wanted; whether that was to be a task.
    fn take_task_request(&mut self, request: RequestHandle) -> bool;

    /// Forgets a request that its client gave up.
    fn forget(&mut self, request: RequestHandle);

    /// Makes a task of a call that asks to be one.
    // MCP 2025-11-25 basic/utilities/tasks#creating-tasks [TASK-001] [TASK-045]
    fn begin(&mut self, machine: &mut M, request: &Request<'_>, now: Instant) -> TaskStart;

    /// Makes a task of a request, and answers it so; whether there was room for one more.
    fn create(&mut self, machine: &mut M, request: &Request<'static>, now: Instant) -> bool;

    /// Takes what the handler of a request came to; gives it back where the request is not a task,
    /// so that it is answered with it.
    fn complete(
        &mut self,
        request: RequestHandle,
        outcome: Outcome,
        now: Instant,
    ) -> Option<Outcome>;

    /// Keeps what a handler says of how far it is, and tells whoever wants to know; whether the
    /// request is a task's.
    fn report(
        &mut self,
        machine: &mut M,
        request: RequestHandle,
        report: ProgressReport<'_>,
        now: Instant,
    ) -> bool;

    /// The place of the task that a request has become, until the task is over.
    fn place_of(&self, request: RequestHandle) -> Option<u32>;

    /// A request whose handler is to be called again, and whose it is.
    fn poll_resumed(&mut self) -> Option<(Request<'static>, Option<Principal>)>;

    /// Tells of tasks whose status has changed, and answers or asks those who wait for them.
    fn notify_changes(&mut self, machine: &mut M, now: Instant);

    /// When the next task is given up.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Gives up one task whose time is over; its handler, if it is at work, is to be dropped.
    fn expire(&mut self, now: Instant) -> Option<TaskHandler>;

    /// Answers a request about tasks, at once but for one that waits for a result.
    fn serve(
        &mut self,
        request: &Request<'_>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> TaskResponse;
}
