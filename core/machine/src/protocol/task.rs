//! Tasks: requests whose result is fetched later.
//!
//! Tasks have two forms with the same concepts but different shapes: those of 2025-11-25, and those
//! of the extension `io.modelcontextprotocol/tasks` since 2026-07-28. One set of types can be
//! written in either form.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde::ser::{Error as _, SerializeMap, Serializer};

use super::Revision;
use super::input::{InputRequests, InputResponses};
use super::message::{message, word};
use super::meta::Meta;
use super::wire::{NotExpressible, SerializeAt};
use crate::jsonrpc::{Json, RawJson};

message! {
    /// Requests to run a request as a task; 2025-11-25 only.
    // MCP 2025-11-25 basic/utilities/tasks#creating-tasks [TASK-001]
    #[derive(Default)]
    pub struct TaskMetadata {
        required {}
        defaulted {}
        optional {
            /// The requested lifetime of the task, in milliseconds.
            ttl: u64 as u64 = "ttl" in ALL;
        }
    }
}

message! {
    /// The task that a message belongs to, in its metadata; 2025-11-25 only.
    // MCP 2025-11-25 basic/utilities/tasks#related-task-metadata [META-015]
    pub struct RelatedTask {
        required {
            /// The task.
            task_id: String = "taskId" in ALL;
        }
        defaulted {}
        optional {}
    }
}

word! {
    /// The status of a task.
    // MCP 2025-11-25 basic/utilities/tasks#task-status-lifecycle [TASK-009]
    pub enum TaskStatus {
        /// The task is running.
        Working = "working",
        /// The task waits for input.
        InputRequired = "input_required",
        /// The task has a result.
        Completed = "completed",
        /// The task has an error.
        Failed = "failed",
        /// The task was cancelled.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// Returns whether the status is final.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task: a request that runs independently of its response.
// MCP 2025-11-25 schema.json#Task [TASK-010]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Task {
    /// The id of the task.
    pub task_id: String,
    /// The status.
    pub status: TaskStatus,
    /// Details of the status, for users.
    pub status_message: Option<String>,
    /// The creation time, as an ISO 8601 date and time.
    pub created_at: String,
    /// The time of the last status change, as an ISO 8601 date and time.
    pub last_updated_at: String,
    /// The lifetime, in milliseconds since the creation; `None` if unlimited.
    pub ttl_ms: Option<u64>,
    /// The polling interval, in milliseconds.
    pub poll_interval_ms: Option<u64>,
}

impl Task {
    /// Creates a task with an unlimited lifetime.
    #[must_use]
    pub fn new(task_id: impl Into<String>, created_at: impl Into<String>) -> Self {
        let created_at = created_at.into();
        Self {
            task_id: task_id.into(),
            status: TaskStatus::Working,
            status_message: None,
            last_updated_at: created_at.clone(),
            created_at,
            ttl_ms: None,
            poll_interval_ms: None,
        }
    }

    /// Sets [`Task::status`].
    #[must_use]
    pub fn status(mut self, status: TaskStatus) -> Self {
        self.status = status;
        self
    }

    /// Sets [`Task::status_message`].
    #[must_use]
    pub fn status_message(mut self, message: impl Into<String>) -> Self {
        self.status_message = Some(message.into());
        self
    }

    /// Sets [`Task::last_updated_at`].
    #[must_use]
    pub fn last_updated_at(mut self, time: impl Into<String>) -> Self {
        self.last_updated_at = time.into();
        self
    }

    /// Sets [`Task::ttl_ms`].
    #[must_use]
    pub fn ttl_ms(mut self, ttl: u64) -> Self {
        self.ttl_ms = Some(ttl);
        self
    }

    /// Sets [`Task::poll_interval_ms`].
    #[must_use]
    pub fn poll_interval_ms(mut self, interval: u64) -> Self {
        self.poll_interval_ms = Some(interval);
        self
    }

    fn write_fields<M: SerializeMap>(
        &self,
        revision: Revision,
        map: &mut M,
    ) -> Result<(), M::Error> {
        let (ttl, poll_interval) = if revision >= Revision::V2026_07_28 {
            ("ttlMs", "pollIntervalMs")
        } else {
            ("ttl", "pollInterval")
        };
        map.serialize_entry("taskId", &self.task_id)?;
        map.serialize_entry("status", self.status.as_str())?;
        if let Some(message) = &self.status_message {
            map.serialize_entry("statusMessage", message)?;
        }
        map.serialize_entry("createdAt", &self.created_at)?;
        map.serialize_entry("lastUpdatedAt", &self.last_updated_at)?;
        // An unlimited lifetime is written as `null`, not omitted.
        map.serialize_entry(ttl, &self.ttl_ms)?;
        if let Some(interval) = self.poll_interval_ms {
            map.serialize_entry(poll_interval, &interval)?;
        }
        Ok(())
    }
}

impl SerializeAt for Task {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write_fields(revision, &mut map)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Task {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Flat::deserialize(deserializer).map(|flat| flat.detailed.task)
    }
}

/// A task with its input requests, its result or its error.
///
/// Until 2025-11-25 only the task itself is written; the other parts are sent in separate messages.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DetailedTask {
    /// The task.
    pub task: Task,
    /// The pending input requests, with [`TaskStatus::InputRequired`].
    pub input_requests: Option<InputRequests>,
    /// The result of the request, with [`TaskStatus::Completed`].
    pub result: Option<Json>,
    /// The JSON-RPC error of the request, with [`TaskStatus::Failed`].
    pub error: Option<Json>,
}

impl DetailedTask {
    /// Creates a task with the status "input required".
    #[must_use]
    pub fn input_required(task: Task, requests: InputRequests) -> Self {
        let task = task.status(TaskStatus::InputRequired);
        Self { input_requests: Some(requests), ..task.into() }
    }

    /// Creates a task with the status "completed".
    #[must_use]
    pub fn completed(task: Task, result: Json) -> Self {
        Self { result: Some(result), ..task.status(TaskStatus::Completed).into() }
    }

    /// Creates a task with the status "failed".
    #[must_use]
    pub fn failed(task: Task, error: Json) -> Self {
        Self { error: Some(error), ..task.status(TaskStatus::Failed).into() }
    }

    fn write_fields<M: SerializeMap>(
        &self,
        revision: Revision,
        map: &mut M,
    ) -> Result<(), M::Error> {
        self.task.write_fields(revision, map)?;
        // MCP 2026-07-28 ext-tasks:tasks#response [TASK-030]: inline, depending on the status.
        if revision < Revision::V2026_07_28 {
            return Ok(());
        }
        let missing = |what| Err(M::Error::custom(NotExpressible::new(what, revision)));
        match self.task.status {
            TaskStatus::InputRequired => match &self.input_requests {
                Some(requests) => map.serialize_entry("inputRequests", &requests.at(revision)),
                None => missing("a task that waits for input without input requests"),
            },
            TaskStatus::Completed => match &self.result {
                Some(result) => map.serialize_entry("result", result),
                None => missing("a completed task without its result"),
            },
            TaskStatus::Failed => match &self.error {
                Some(error) => map.serialize_entry("error", error),
                None => missing("a failed task without its error"),
            },
            TaskStatus::Working | TaskStatus::Cancelled | TaskStatus::Unknown(_) => Ok(()),
        }
    }
}

impl From<Task> for DetailedTask {
    fn from(task: Task) -> Self {
        Self { task, input_requests: None, result: None, error: None }
    }
}

/// All members of an object with a task, under the names of both forms.
#[derive(Deserialize)]
#[serde(from = "FlatFields")]
struct Flat {
    detailed: DetailedTask,
    meta: Option<Meta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FlatFields {
    task_id: String,
    status: TaskStatus,
    status_message: Option<String>,
    created_at: String,
    last_updated_at: String,
    // Any number: the extension has no bounds. The conversion saturates.
    ttl: Option<f64>,
    ttl_ms: Option<f64>,
    poll_interval: Option<f64>,
    poll_interval_ms: Option<f64>,
    // An answer names its request by the key alone.
    #[serde(default, deserialize_with = "super::map::distinct")]
    input_requests: Option<InputRequests>,
    result: Option<Json>,
    error: Option<Json>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

impl From<FlatFields> for Flat {
    fn from(fields: FlatFields) -> Self {
        let task = Task {
            task_id: fields.task_id,
            status: fields.status,
            status_message: fields.status_message,
            created_at: fields.created_at,
            last_updated_at: fields.last_updated_at,
            ttl_ms: fields.ttl_ms.or(fields.ttl).map(|ms| ms as u64),
            poll_interval_ms: fields.poll_interval_ms.or(fields.poll_interval).map(|ms| ms as u64),
        };
        let FlatFields { input_requests, result, error, meta, .. } = fields;
        Self { detailed: DetailedTask { task, input_requests, result, error }, meta }
    }
}

/// The response to a request that runs as a task.
// MCP 2025-11-25 basic/utilities/tasks#creating-tasks [TASK-001]: nested.
// MCP 2026-07-28 ext-tasks:tasks#polymorphic-results [TASK-026]: flat, with its own type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task.
    pub task: Task,
    /// Metadata.
    pub meta: Option<Meta>,
}

impl CreateTaskResult {
    /// Creates the response for a task.
    #[must_use]
    pub const fn new(task: Task) -> Self {
        Self { task, meta: None }
    }

    /// Sets [`CreateTaskResult::meta`].
    #[must_use]
    pub fn meta(mut self, meta: impl Into<Meta>) -> Self {
        self.meta = Some(meta.into());
        self
    }
}

impl SerializeAt for CreateTaskResult {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if revision >= Revision::V2026_07_28 {
            map.serialize_entry("resultType", "task")?;
            self.task.write_fields(revision, &mut map)?;
        } else {
            map.serialize_entry("task", &self.task.at(revision))?;
        }
        write_meta(self.meta.as_ref(), revision, &mut map)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for CreateTaskResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Nested<'a> {
            #[serde(borrow)]
            task: Option<RawJson<'a>>,
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }

        let json = Json::deserialize(deserializer)?;
        let nested: Nested<'_> = json.decode().map_err(D::Error::custom)?;
        let task = match nested.task {
            Some(task) => task.decode(),
            None => json.decode(),
        };
        Ok(Self { task: task.map_err(D::Error::custom)?, meta: nested.meta })
    }
}

macro_rules! flat_task {
    ($(#[$meta:meta])* pub struct $name:ident $(; result $result:literal)?) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            /// The task with its input requests, result or error.
            pub detailed: DetailedTask,
            /// Metadata.
            pub meta: Option<Meta>,
        }

        impl $name {
            #[doc = concat!("Sets [`", stringify!($name), "::meta`].")]
            #[must_use]
            pub fn meta(mut self, meta: impl Into<Meta>) -> Self {
                self.meta = Some(meta.into());
                self
            }
        }

        impl From<DetailedTask> for $name {
            fn from(detailed: DetailedTask) -> Self {
                Self { detailed, meta: None }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let Flat { detailed, meta } = Flat::deserialize(deserializer)?;
                Ok(Self { detailed, meta })
            }
        }

        impl SerializeAt for $name {
            fn serialize_at<S: Serializer>(
                &self,
                revision: Revision,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $( if revision >= Revision::V2026_07_28 {
                    map.serialize_entry("resultType", $result)?;
                } )?
                self.detailed.write_fields(revision, &mut map)?;
                write_meta(self.meta.as_ref(), revision, &mut map)?;
                map.end()
            }
        }
    };
}

flat_task! {
    /// The result of `tasks/get`.
    // MCP 2026-07-28 ext-tasks:tasks#response [TASK-030]: its type is "complete".
    pub struct GetTaskResult; result "complete"
}

flat_task! {
    /// The parameters of `notifications/tasks/status` in 2025-11-25 and of `notifications/tasks`
    /// since.
    // MCP 2025-11-25 basic/utilities/tasks#task-notifications [TASK-016]
    // MCP 2026-07-28 ext-tasks:tasks#task-status-notifications [TASK-038]
    pub struct TaskStatusParams
}

fn write_meta<M: SerializeMap>(
    meta: Option<&Meta>,
    revision: Revision,
    map: &mut M,
) -> Result<(), M::Error> {
    match meta {
        Some(meta) => map.serialize_entry("_meta", &meta.at(revision)),
        None => Ok(()),
    }
}

/// The result of `tasks/cancel`: the task at 2025-11-25, and only an acknowledgement since.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CancelTaskResult {
    /// The task, whose status is "cancelled".
    pub task: Option<Task>,
    /// Metadata.
    pub meta: Option<Meta>,
}

impl CancelTaskResult {
    /// Creates a result without the task, in the form of 2026-07-28 and later.
    #[must_use]
    pub const fn new() -> Self {
        Self { task: None, meta: None }
    }

    /// Sets [`CancelTaskResult::task`].
    #[must_use]
    pub fn task(mut self, task: Task) -> Self {
        self.task = Some(task);
        self
    }

    /// Sets [`CancelTaskResult::meta`].
    #[must_use]
    pub fn meta(mut self, meta: impl Into<Meta>) -> Self {
        self.meta = Some(meta.into());
        self
    }
}

impl SerializeAt for CancelTaskResult {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if revision >= Revision::V2026_07_28 {
            // MCP 2026-07-28 ext-tasks:tasks#task-update-requests [TASK-033]: empty.
            map.serialize_entry("resultType", "complete")?;
        } else if let Some(task) = &self.task {
            // MCP 2025-11-25 basic/utilities/tasks#task-cancellation [TASK-018]
            task.write_fields(revision, &mut map)?;
        } else {
            return Err(S::Error::custom(NotExpressible::new(
                "a cancelled task without the task",
                revision,
            )));
        }
        write_meta(self.meta.as_ref(), revision, &mut map)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for CancelTaskResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Probe<'a> {
            #[serde(rename = "taskId", borrow)]
            task_id: Option<RawJson<'a>>,
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }

        let json = Json::deserialize(deserializer)?;
        let probe: Probe<'_> = json.decode().map_err(D::Error::custom)?;
        let task = probe.task_id.map(|_| json.decode()).transpose().map_err(D::Error::custom)?;
        Ok(Self { task, meta: probe.meta })
    }
}

message! {
    /// The parameters of `tasks/get`, `tasks/result` and `tasks/cancel`.
    pub struct TaskIdParams {
        required {
            /// The task.
            task_id: String = "taskId" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The parameters of `tasks/update`; the extension only.
    // MCP 2026-07-28 ext-tasks:tasks#task-update-requests [TASK-032]
    pub struct UpdateTaskParams {
        required {
            /// The task.
            task_id: String = "taskId" in ALL;
            /// The responses to the task's input requests.
            input_responses: InputResponses = "inputResponses" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The result of `tasks/list`; 2025-11-25 only.
    // MCP 2025-11-25 basic/utilities/tasks#task-listing [TASK-017]
    pub struct ListTasksResult {
        required {
            /// This page of the tasks.
            #[serde(deserialize_with = "crate::jsonrpc::list")]
            tasks: Vec<Task> = "tasks" in ALL;
        }
        defaulted {}
        optional {
            /// The cursor of the next page; `None` on the last page.
            next_cursor: String = "nextCursor" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

#[cfg(test)]
mod tests;
