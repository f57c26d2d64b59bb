use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::{ErrorObject, Json, JsonError, RawJson};
use mcp_sansio::peer::{MethodName, Request};
use mcp_sansio::protocol::{CancelTaskResult, GetTaskResult, Method, SerializeAt};
use mcp_sansio_collections::Key;

use super::entry::{Responses, State};
use super::requestors::Requestor;
use super::table::TaskTable;
use super::tasks::TaskHandler;

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
                GetTaskResult::from(entry.detailed()).to_json_at(request.revision)
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
