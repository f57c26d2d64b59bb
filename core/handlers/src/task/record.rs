//! Tasks as records in a store that several nodes share.

use alloc::string::{String, ToString};

use mcp_sansio::Revision;
use mcp_sansio::http::TaskRecord;
use mcp_sansio::jsonrpc::{ErrorObject, Json, JsonError, RawJson};
use mcp_sansio::protocol::{
    DetailedTask, GetTaskResult, InputRequests, SerializeAt, Task, TaskStatus,
};

use super::entry::{Entry, State};
use super::related::related;

/// The error of a task whose node has failed.
const NODE_FAILED: &str = "the server that ran this task has failed; its outcome is unknown";

/// The part of a record that `tasks/get` does not return at 2025-11-25: the result or error of the
/// call, or the open input requests of a round.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Details {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inputs: Option<Json>,
    /// Counted from 1.
    #[serde(default)]
    pub(super) round: u32,
}

/// A task as other nodes see it.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) ended: bool,
    pub(super) task: String,
    pub(super) details: String,
}

impl Snapshot {
    pub(super) fn from_entry(entry: &Entry) -> Result<Self, JsonError> {
        let revision = entry.request.revision;
        let mut details = Details { round: entry.rounds(), ..Details::default() };
        // Later revisions have all of it in the task itself.
        if entry.is_client_requested() {
            match &entry.state {
                State::Completed(result) | State::ToolError(result) => {
                    details.result = Some(result.clone());
                }
                State::Failed(error) => details.error = Some(error.clone()),
                State::InputRequired(_) => {
                    let open = entry.questions().and_then(|required| required.input_requests);
                    details.inputs = open.map(|open| open.to_json_at(revision)).transpose()?;
                }
                State::Working | State::Cancelled => {}
            }
        }
        let task = GetTaskResult::from(entry.detailed()).to_json_at(revision)?;
        Ok(Self {
            ended: entry.is_over(),
            task: task.as_str().into(),
            details: Json::from_serialize(&details)?.as_str().into(),
        })
    }
}

impl Details {
    pub(super) fn from_record(record: &TaskRecord) -> Self {
        RawJson::parse(&record.details).ok().and_then(|it| it.decode().ok()).unwrap_or_default()
    }

    /// Returns the open input requests.
    pub(super) fn questions(&self) -> Option<InputRequests> {
        self.inputs.as_ref()?.decode().ok()
    }

    /// Returns the answer that the call of an ended task would have had.
    // MCP 2025-11-25 basic/utilities/tasks#result-retrieval [TASK-013] [TASK-014]
    pub(super) fn final_answer(self, task: &Task) -> Result<Json, ErrorObject<'static>> {
        if let Some(result) = &self.result {
            return Ok(related(result, &task.task_id));
        }
        let error = self
            .error
            .and_then(|error| error.decode::<ErrorObject<'_>>().map(ErrorObject::into_owned).ok());
        Err(error.unwrap_or_else(|| {
            ErrorObject::internal(match task.status {
                TaskStatus::Cancelled => "the task was cancelled",
                _ => "the task failed",
            })
        }))
    }
}

/// Returns the task of a record.
pub(super) fn task_of(text: &str) -> Option<Task> {
    let task = RawJson::parse(text).ok()?.decode::<GetTaskResult>().ok()?;
    Some(task.detailed.task)
}

/// Returns the result of `tasks/get` in a record.
pub(super) fn json_of(text: &str) -> Option<Json> {
    Some(RawJson::parse(text).ok()?.into_owned().into())
}

/// Returns the record of a task whose node has failed at `time`, an ISO 8601 timestamp.
pub(super) fn failed(record: &TaskRecord, revision: Revision, time: String) -> Option<TaskRecord> {
    let mut error = ErrorObject::internal(NODE_FAILED);
    error.code = error.code.at_revision(revision);
    let error = Json::from_serialize(&error).ok()?;
    let task = task_of(&record.task)?.status_message(NODE_FAILED).last_updated_at(time);
    let details = Details { error: Some(error.clone()), ..Details::from_record(record) };
    let details = Details { result: None, inputs: None, ..details };
    let task = GetTaskResult::from(DetailedTask::failed(task, error)).to_json_at(revision).ok()?;
    let details = Json::from_serialize(&details).ok()?;
    Some(TaskRecord::new(record.node, true, task.as_str().into(), details.as_str().to_string()))
}
