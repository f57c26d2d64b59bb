//! The tasks of 2025-11-25: calls that request to be tasks, and requests about these tasks.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio::envelope::write_string;
use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson};
use mcp_sansio::peer::{
    HttpRejection, InputResponseParams, MethodName, Request, RequestHandle, Status,
};
use mcp_sansio::protocol::{
    CancelTaskResult, GetTaskResult, ListTasksResult, Map, SerializeAt, Task, TaskMetadata,
};
use mcp_sansio::{Capability, Instant, Method, Revision};
use mcp_sansio_collections::Key;

use super::entry::{Entry, State, related};
use super::requestors::Requestor;
use super::settings::TaskEvent;
use super::table::{TaskTable, answer, shortened};
use super::tasks::{TaskHandler, TaskStart, written_task};
use crate::reply::ResultBody;
use crate::server_binding::ServerBinding;

/// The number of tasks per page of a list: some 30 KiB of text, or three times that with long
/// messages.
pub(super) const PAGE_LENGTH: usize = 100;

/// The most requests that may wait for the result of one task. 4: one is enough, but on HTTP a
/// request stays after its client has closed the stream. Each is answered with a copy of the
/// result, all at the same time.
pub(super) const WAITING_MAX: usize = 4;

/// How many requests about a task a client may send per poll interval.
const PATIENCE: u128 = 4;

/// The answer to a request about tasks: `None` if the request waits or is already answered.
pub(crate) type Answer = Result<Option<Json>, ErrorObject<'static>>;

impl TaskTable {
    /// Removes the status message of a task.
    pub(super) fn forget_message(&mut self, key: Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let before = entry.bytes();
        entry.task.status_message = None;
        self.weigh(key, before);
    }

    /// Creates a task for a call that requests one.
    pub(super) fn begin_requested<M: ServerBinding>(
        &mut self,
        machine: &mut M,
        request: &Request<'_>,
        now: Instant,
    ) -> TaskStart {
        if request.revision != Revision::V2025_11_25
            || request.method != Method::ToolsCall
            || !runs_tools_as_tasks(machine, request.handle)
        {
            return TaskStart::Call;
        }
        // The catalog has checked that the tool supports tasks.
        let asked = request.params.get("task").filter(|asked| asked.as_str() != "null");
        let Some(asked) = asked else { return TaskStart::Call };
        // A derived deserializer would accept an array for an object, a map only an empty one.
        let is_object = asked.decode::<Map<Json>>().is_ok();
        let asked = is_object.then(|| asked.decode::<TaskMetadata>().ok()).flatten();
        let refused = match asked {
            Some(_) if machine.sharing().is_some_and(|it| !it.admits()) => {
                let _refused = machine.refuse(request.handle, unavailable(), now);
                return TaskStart::Refused;
            }
            Some(asked) => {
                // MCP 2025-11-25 basic/utilities/tasks#ttl-and-resource-management [TASK-011]: at
                // most the server's limit, and at least the poll interval, so that the client can
                // ask for the task.
                let (least, most) = (self.settings.poll_interval, self.settings.ttl);
                let ttl = asked.ttl.map_or(most, Duration::from_millis).max(least).min(most);
                let requestor = Requestor::from_request(request);
                // MCP 2025-11-25 basic/utilities/tasks#result-retrieval [TASK-045]: answered before
                // the tool runs.
                if let Some(created) = self.add(request.clone().into_owned(), requestor, ttl, now) {
                    self.confirm(machine, request, created, now);
                    return TaskStart::Task;
                }
                ErrorObject::internal("the server has too many tasks; try again later")
            }
            None => ErrorObject::invalid_params(
                "`task` must be an object, and its `ttl` a whole number of milliseconds",
            ),
        };
        answer(machine, request.handle, Err(refused), now);
        TaskStart::Refused
    }

    /// Answers a request about tasks of this kind.
    pub(super) fn answer_requested(
        &mut self,
        request: &Request<'_>,
        now: Instant,
        dropped: &mut Option<TaskHandler>,
    ) -> Answer {
        if let Some(&key) = self.waiting.get(&request.handle) {
            self.take_inputs(key, &request.inputs, now);
            return Ok(None);
        }
        let requestor = Requestor::from_request(request);
        self.admit(&requestor, now)?;
        if request.method == Method::TasksList {
            return self.list(request, &requestor, now).map(Some);
        }
        // MCP 2025-11-25 basic/utilities/tasks#associating-task-related-messages [TASK-014]: the
        // metadata is ignored.
        let name = request.subject();
        let name = name.as_ref().and_then(RawJson::to_text);
        let name = name.ok_or_else(|| ErrorObject::invalid_params("`taskId` must be a string"))?;
        self.answer_admitted(request, &name, now, dropped)
    }

    /// Returns whether a client may send another request about tasks.
    pub(super) fn admit(
        &mut self,
        requestor: &Requestor,
        now: Instant,
    ) -> Result<(), ErrorObject<'static>> {
        let per_task = self.requests_per_task();
        if self.requestors.admit(requestor, per_task, now) {
            return Ok(());
        }
        Err(too_often())
    }

    /// Returns how many requests about a task are allowed in a second.
    pub(super) fn requests_per_task(&self) -> usize {
        let pause = self.settings.poll_interval.as_millis().max(1);
        (1000 * PATIENCE).div_ceil(pause) as usize
    }

    /// Answers a request about the task `name`.
    pub(super) fn answer_admitted(
        &mut self,
        request: &Request<'_>,
        name: &str,
        now: Instant,
        dropped: &mut Option<TaskHandler>,
    ) -> Answer {
        let requestor = Requestor::from_request(request);
        // MCP 2025-11-25 basic/utilities/tasks#protocol-errors [TASK-019]
        let unknown = || ErrorObject::invalid_params("unknown task");
        let key = self.find(name, &requestor, now).ok_or_else(unknown)?;
        let entry = self.entries.get_mut(key).ok_or_else(unknown)?;
        match &request.method {
            MethodName::Known(Method::TasksResult) if entry.is_over() => {
                self.settings.tell(TaskEvent::Retrieved, entry);
                final_answer(entry).map(Some)
            }
            // MCP 2025-11-25 basic/utilities/tasks#result-retrieval [TASK-013]: the request waits
            // until the task ends.
            MethodName::Known(Method::TasksResult) => {
                entry.waiting.push(waiting_request(request, &entry.task.task_id));
                self.waiting.insert(request.handle, key);
                self.note(key);
                Ok(None)
            }
            // MCP 2025-11-25 basic/utilities/tasks#task-cancellation [TASK-018],
            // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-009]
            MethodName::Known(Method::TasksCancel) => {
                if entry.is_over() {
                    return Err(not_cancellable(&entry.task));
                }
                *dropped = Some(TaskHandler { request: entry.request.handle, place: key.slot });
                self.forget_message(key);
                self.change(key, Ok(State::Cancelled), now);
                let mut result = CancelTaskResult::new();
                result.task = self.entries.get(key).map(|entry| entry.task.clone());
                written_task(result.to_json_at(request.revision)).map(Some)
            }
            _ => {
                let task = GetTaskResult::from(entry.detailed());
                written_task(task.to_json_at(request.revision)).map(Some)
            }
        }
    }

    /// Lists one page of a requestor's tasks, starting with the oldest.
    // MCP 2025-11-25 basic/utilities/tasks#task-listing [TASK-017]
    // MCP 2025-11-25 basic/utilities/tasks#task-isolation-and-access-control [TASK-021]
    fn list(
        &self,
        request: &Request<'_>,
        requestor: &Requestor,
        now: Instant,
    ) -> Result<Json, ErrorObject<'static>> {
        let after = match request.params.get("cursor").filter(|it| it.as_str() != "null") {
            None => 0,
            // MCP 2025-11-25 basic/utilities/tasks#protocol-errors [TASK-019]
            Some(cursor) => cursor
                .to_text()
                .and_then(|cursor| cursor.parse().ok())
                .filter(|number| (1..=self.requestors.last(requestor)).contains(number))
                .ok_or_else(invalid_cursor)?,
        };
        let mut tasks = Vec::new();
        let (mut last, mut next_cursor) = (after, None);
        for (number, key) in self.requestors.after(requestor, after) {
            // An expired task is hidden even before it is removed.
            let Some(entry) = self.entries.get(key).filter(|it| now < it.expires) else { continue };
            if tasks.len() == PAGE_LENGTH {
                next_cursor = Some(last.to_string());
                break;
            }
            tasks.push(entry.task.clone());
            last = number;
        }
        let mut result = ListTasksResult::new(tasks);
        result.next_cursor = next_cursor;
        written_task(result.to_json_at(request.revision))
    }

    /// Handles the answers to the input requests of a task, and resumes the task.
    // MCP 2025-11-25 basic/utilities/tasks#input-required-status [TASK-048]
    pub(super) fn take_inputs(&mut self, key: Key, inputs: &InputResponseParams<'_>, now: Instant) {
        let responses = inputs.responses().map_or(0, |it| it.as_str().len());
        let too_much = self.is_too_much(responses);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.asked = None;
        let (before, handle) = (entry.bytes(), entry.request.handle);
        if too_much {
            let error = ErrorObject::internal("the tasks of the server exceed their memory limit");
            return self.change(key, Err(error), now);
        }
        if entry.take_inputs(inputs.clone().into_owned()) {
            self.weigh(key, before);
            self.change(key, Ok(State::Working), now);
            self.resume(handle);
        }
    }

    /// Answers the requests that wait for a task if it has ended; otherwise sends its input
    /// requests through one of them.
    pub(super) fn serve_waiting<M: ServerBinding>(
        &mut self,
        key: Key,
        machine: &mut M,
        now: Instant,
    ) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.is_over() {
            // The answer to its input request is no longer needed.
            if let Some(asked) = entry.asked.take() {
                machine.withdraw(asked, now);
            }
            for request in core::mem::take(&mut entry.waiting) {
                self.waiting.remove(&request.handle);
                self.settings.tell(TaskEvent::Retrieved, entry);
                answer(machine, request.handle, final_answer(entry), now);
            }
            return;
        }
        // Drops the oldest request: its client probably closed the stream before it sent the new
        // one.
        while entry.waiting.len() > WAITING_MAX {
            let request = entry.waiting.remove(0).handle;
            self.waiting.remove(&request);
            if entry.asked == Some(request) {
                entry.asked = None;
                machine.withdraw(request, now);
            }
            let error = ErrorObject::internal("too many requests wait for this task");
            answer(machine, request, Err(error), now);
        }
        // MCP 2025-11-25 basic/utilities/tasks#input-required-status [TASK-015]: a client may close
        // the stream and send the request again.
        if let Some(asked) = entry.asked
            && !machine.has_open_stream(asked)
            && entry.waiting.iter().any(|waiting| machine.has_open_stream(waiting.handle))
        {
            entry.asked = None;
            machine.withdraw(asked, now);
        }
        while entry.asked.is_none()
            && let Some(required) = entry.questions()
        {
            let heard =
                entry.waiting.iter().find(|waiting| machine.has_open_stream(waiting.handle));
            let Some(asking) = heard.or_else(|| entry.waiting.first()) else { break };
            let request = asking.handle;
            // If the input request cannot be sent, the machine has answered the request.
            if machine.require_input(asking, &required, now).is_ok() {
                entry.asked = Some(request);
            } else {
                entry.waiting.retain(|waiting| waiting.handle != request);
                self.waiting.remove(&request);
            }
        }
    }
}

pub(super) fn too_often() -> ErrorObject<'static> {
    ErrorObject::internal("too many requests about tasks; ask less often")
}

/// Returns the error of a request to cancel a task that has ended.
// MCP 2025-11-25 basic/utilities/tasks#task-cancellation [TASK-018]
pub(super) fn not_cancellable(task: &Task) -> ErrorObject<'static> {
    let status = task.status.as_str();
    ErrorObject::invalid_params(format!("the task cannot be cancelled: its status is {status}"))
}

/// Whether the session of a request was told that the server supports tasks for tools.
// MCP 2025-11-25 basic/utilities/tasks#task-support-and-handling [TASK-006]
fn runs_tools_as_tasks(machine: &impl ServerBinding, request: RequestHandle) -> bool {
    let session = machine.session_of(request);
    session.is_some_and(|it| it.server_capabilities().contains(Capability::TasksToolsCall))
}

/// Returns the answer that the call of an ended task would have had.
// MCP 2025-11-25 basic/utilities/tasks#result-retrieval [TASK-013] [TASK-014]
fn final_answer(entry: &Entry) -> Result<Json, ErrorObject<'static>> {
    match &entry.state {
        State::Completed(result) | State::ToolError(result) => {
            Ok(related(result, &entry.task.task_id))
        }
        State::Failed(error) => {
            let error = error.decode::<ErrorObject<'_>>().map(ErrorObject::into_owned);
            Err(error.unwrap_or_else(|_| ErrorObject::internal("the task failed")))
        }
        State::Cancelled => Err(ErrorObject::internal("the task was cancelled")),
        State::Working | State::InputRequired(_) => {
            Err(ErrorObject::internal("the task is still running"))
        }
    }
}

/// Returns the request for a task's result in the form that is stored: with the task id as its only
/// parameter, without other parameters of the client.
pub(super) fn waiting_request(request: &Request<'_>, task: &str) -> Request<'static> {
    let mut params = String::new();
    params.push_str(r#"{"taskId":"#);
    write_string(&mut params, task);
    params.push('}');
    let mut waiting = request.clone();
    waiting.clear_params();
    waiting.params = RawJson::trusted_string(params);
    waiting.into_owned()
}

/// Returns the failure message of a result, if it is a tool error.
pub(super) fn failure_of(body: &ResultBody) -> Option<String> {
    let ResultBody::Tool(result) = body else { return None };
    let says = || result.content.iter().find_map(|block| block.as_text());
    (result.is_error == Some(true)).then(|| shortened(says().unwrap_or("the tool failed")))
}

/// Returns the refusal of a request that needs the store, for one second, as the machine refuses
/// others that need it.
pub(super) fn unavailable() -> HttpRejection {
    let error = ErrorObject::internal("the store of tasks is not available");
    HttpRejection::new(Status::SERVICE_UNAVAILABLE, error).retry_after(1)
}

pub(super) fn invalid_cursor() -> ErrorObject<'static> {
    ErrorObject::invalid_params(
        "invalid cursor for this list of tasks: start again without a cursor",
    )
}
