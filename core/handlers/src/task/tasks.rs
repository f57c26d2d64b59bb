//! The interface of a task table to the endpoint, and the requests about tasks.

use core::fmt;

use mcp_sansio::jsonrpc::{ErrorObject, Json, JsonError, RawJson};
use mcp_sansio::peer::{MethodName, Request, RequestHandle};
use mcp_sansio::protocol::{CancelTaskResult, DetailedTask, GetTaskResult, SerializeAt};
use mcp_sansio::{Instant, Method};
use mcp_sansio_collections::Key;

use super::client_requested::Answer;
use super::entry::{Responses, State};
use super::requestors::Requestor;
use super::table::TaskTable;
use crate::reply::Outcome;

/// Whether a request is about tasks. The gate checks which of these methods a revision has.
// MCP 2026-07-28 ext-tasks:SEP-2663#backward-compatibility [TASK-040]
// MCP 2025-11-25 ext-tasks:SEP-2663#backward-compatibility [TASK-044]
pub(crate) const fn is_task_request(request: &Request<'_>) -> bool {
    matches!(
        request.method,
        MethodName::Known(
            Method::TasksGet
                | Method::TasksResult
                | Method::TasksList
                | Method::TasksUpdate
                | Method::TasksCancel
        )
    )
}

/// The handler of a task, by its request and its slot in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskHandler {
    pub(crate) request: RequestHandle,
    pub(crate) place: u32,
}

/// The response to a request about a task.
#[derive(Debug)]
pub(crate) struct TaskResponse {
    /// `None` if the request waits or is already answered.
    pub(crate) outcome: Option<Outcome>,
    /// The handler to drop, whose answer is no longer needed.
    pub(crate) dropped: Option<TaskHandler>,
}

/// How a call starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStart {
    /// As a plain call: it does not request a task.
    Call,
    /// As a task; the request is answered.
    Task,
    /// The request for a task was refused and answered.
    Refused,
}

/// A progress report of a handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgressReport<'r> {
    pub(crate) progress: f64,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<&'r str>,
}

/// A server machine that shares tasks with other nodes, through a store.
pub(crate) trait TaskSharing {
    /// Whether another task may be created: the store is available, or tasks may stay local.
    fn admits(&self) -> bool;

    /// Exchanges changes with the store; returns a handler to drop, if any: call it again then.
    fn exchange(&mut self, table: &mut TaskTable, now: Instant) -> Option<TaskHandler>;

    /// Answers a request about a task of another node.
    fn look_up(
        &mut self,
        table: &mut TaskTable,
        request: &Request<'_>,
        now: Instant,
    ) -> Option<Answer>;

    /// Defers the answer to a request that has cancelled a task of this node, until it is stored.
    fn defer_cancelled(
        &mut self,
        table: &mut TaskTable,
        request: &Request<'_>,
        answered: Answer,
        now: Instant,
    ) -> Answer;

    /// Stores the task that a request has created, and then answers the request.
    fn store_created(&mut self, table: &mut TaskTable, request: &Request<'_>, created: Json);
}

/// The tasks of a server, as used by its endpoint on a machine of type `M`.
///
/// A trait, so that the binary of a server without tasks contains no code for them: only
/// [`Server::tasks`](crate::Server::tasks) refers to the implementation.
pub(crate) trait Tasks<M>: fmt::Debug + Send + Sync {
    /// Records that the handler of a request wants to become a task as soon as it waits.
    fn request_task(&mut self, request: RequestHandle);

    /// Removes the record of [`request_task`](Self::request_task); returns whether there was one.
    fn take_task_request(&mut self, request: RequestHandle) -> bool;

    /// Removes a request that its client cancelled.
    fn forget(&mut self, request: RequestHandle, now: Instant);

    /// Creates a task for a call that requests one.
    // MCP 2025-11-25 basic/utilities/tasks#creating-tasks [TASK-001] [TASK-045]
    fn begin(&mut self, machine: &mut M, request: &Request<'_>, now: Instant) -> TaskStart;

    /// Creates a task for a request and answers with it; returns whether there was room.
    fn create(&mut self, machine: &mut M, request: &Request<'_>, now: Instant) -> bool;

    /// Takes the outcome of a task's handler. Returns it if the request is not a task, to be sent
    /// as its answer.
    fn complete(
        &mut self,
        request: RequestHandle,
        outcome: Outcome,
        now: Instant,
    ) -> Option<Outcome>;

    /// Stores and sends the progress of a handler; returns whether the request is a task.
    fn report(
        &mut self,
        machine: &mut M,
        request: RequestHandle,
        report: ProgressReport<'_>,
        now: Instant,
    ) -> bool;

    /// Returns the slot of the task that a request has become, until the task ends.
    fn place_of(&self, request: RequestHandle) -> Option<u32>;

    /// Returns a request whose handler can be called again.
    fn poll_resumed(&mut self) -> Option<Request<'static>>;

    /// Notifies clients of changed tasks, and answers the waiting requests or sends input requests
    /// through them.
    /// Exchanges changes with other nodes, and returns a handler to drop, if any: call it again
    /// then.
    fn notify_changes(&mut self, machine: &mut M, now: Instant) -> Option<TaskHandler>;

    /// Returns when the next task expires.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Removes one expired task; returns its handler, to be dropped, if it is running.
    fn expire(&mut self, now: Instant) -> Option<TaskHandler>;

    /// Checks that the tables match each other, in builds with debug assertions. `is_pending` says
    /// whether a request waits for its response.
    fn assert_consistent(&self, is_pending: &dyn Fn(RequestHandle) -> bool);

    /// Like [`assert_consistent`](Self::assert_consistent), for the tables of a server that may
    /// share its tasks with other nodes.
    #[cfg(feature = "http")]
    fn assert_shared_consistent(&self, is_pending: &dyn Fn(RequestHandle) -> bool);

    /// Answers a request about tasks, at once unless it waits for a result.
    fn serve(&mut self, machine: &mut M, request: &Request<'_>, now: Instant) -> TaskResponse;
}

// ------------------------------------------------------------------ requests about tasks

impl TaskTable {
    /// Answers a request about a task of the extension.
    pub(super) fn answer(
        &mut self,
        request: &Request<'_>,
        now: Instant,
        dropped: &mut Option<TaskHandler>,
    ) -> Result<Json, ErrorObject<'static>> {
        let name = request.subject().and_then(|name| name.to_text().map(Into::into));
        let name: alloc::string::String =
            name.ok_or_else(|| ErrorObject::invalid_params("`taskId` must be a string"))?;
        let responses = match &request.method {
            MethodName::Known(Method::TasksUpdate) => Some(responses_of(request)?),
            _ => None,
        };
        self.answer_named(request, &name, responses.as_ref(), now, dropped)
    }

    /// Answers a request about the task `name`, which may have `responses`.
    pub(super) fn answer_named(
        &mut self,
        request: &Request<'_>,
        name: &str,
        responses: Option<&RawJson<'_>>,
        now: Instant,
        dropped: &mut Option<TaskHandler>,
    ) -> Result<Json, ErrorObject<'static>> {
        // MCP 2026-07-28 ext-tasks:tasks#protocol-errors [TASK-035]
        let key = self.find(name, &Requestor::from_request(request), now);
        let key = key.ok_or_else(|| ErrorObject::invalid_params("unknown task"))?;
        let Some(entry) = self.entries.get_mut(key) else {
            return Err(ErrorObject::invalid_params("unknown task"));
        };
        let written = match &request.method {
            // MCP 2026-07-28 ext-tasks:tasks#response [TASK-030]
            MethodName::Known(Method::TasksGet) => {
                let detailed = entry.detailed();
                check_declared(&detailed, request)?;
                GetTaskResult::from(detailed).to_json_at(request.revision)
            }
            // MCP 2026-07-28 ext-tasks:tasks#task-update-requests [TASK-033]
            _ => CancelTaskResult::default().to_json_at(request.revision),
        };
        if let Some(responses) = responses {
            if matches!(entry.state, State::InputRequired(_))
                && self.is_too_much(responses.as_str().len())
            {
                return Err(ErrorObject::internal(
                    "the tasks of the server exceed their memory limit",
                ));
            }
            self.take_responses(key, responses, now);
        } else if request.method == Method::TasksCancel && !entry.is_over() {
            // MCP 2026-07-28 ext-tasks:tasks#task-cancellation [TASK-034]
            *dropped = Some(TaskHandler { request: entry.request.handle, place: key.slot });
            self.change(key, Ok(State::Cancelled), now);
        }
        written_task(written)
    }

    /// Handles responses to a task's input requests.
    pub(super) fn take_responses(&mut self, key: Key, responses: &RawJson<'_>, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let (before, handle) = (entry.bytes(), entry.request.handle);
        let answered = entry.answer(responses);
        self.weigh(key, before);
        match answered {
            Responses::Unexpected => {}
            Responses::Partial => self.touch(key, now),
            Responses::Complete => {
                self.change(key, Ok(State::Working), now);
                self.resume(handle);
            }
        }
    }

    /// Updates the timestamp of a task whose status is unchanged.
    fn touch(&mut self, key: Key, now: Instant) {
        let time = self.settings.time(now);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.task.last_updated_at = time;
        }
        self.note(key);
        #[cfg(feature = "http")]
        self.note_unwritten(key, true);
    }
}

/// Checks that the client of a request supports the input requests that its response contains: it
/// may declare less than at the call.
// MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-005],
// MCP 2026-07-28 schema.json#RequestMetaObject [CAP-020]
pub(super) fn check_declared(
    task: &DetailedTask,
    request: &Request<'_>,
) -> Result<(), ErrorObject<'static>> {
    let open = task.input_requests.as_ref();
    let missing = open.and_then(|them| them.missing(request.capabilities, request.revision));
    missing.map_or(Ok(()), |capability| Err(capability.missing()))
}

pub(super) fn written_task(written: Result<Json, JsonError>) -> Result<Json, ErrorObject<'static>> {
    written.map_err(|_| ErrorObject::internal("the task could not be serialized"))
}

// The machine has refused duplicate members, so at most one exists.
pub(super) fn responses_of<'r>(
    request: &'r Request<'_>,
) -> Result<RawJson<'r>, ErrorObject<'static>> {
    let responses = request.params.get("inputResponses").filter(RawJson::is_object);
    responses.ok_or_else(|| ErrorObject::invalid_params("`inputResponses` must be an object"))
}
