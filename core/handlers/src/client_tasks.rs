//! Tasks from the client's side, at 2025-11-25: tool calls that continue at the server and whose
//! result is fetched later.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{Failure, HeaderFields, InvalidHeader, Progress};
use mcp_sansio::protocol::{
    CallToolResult, CancelTaskResult, CreateTaskResult, GetTaskResult, ListTasksResult, Method,
    Task, TaskIdParams, TaskStatus, TaskSupport, Tool,
};
use serde::Serialize;

use super::client::{Client, ClientError};
use super::pending::{CallFuture, ClientCall, Pending};

/// How long to wait between status requests if the server does not say.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The least pause between status requests, whatever interval the server gives: an interval of zero
/// would cause a busy loop.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// The longest pause between status requests, whatever interval the server gives, and whatever it
/// asks for with `Retry-After`: an hour. The caller gets a result at most that much later.
pub(super) const POLL_INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// How long to wait for a result before the status is requested again. The `ttl` of a task says how
/// long the server keeps it, not how long its result may take.
const POLL_TIMEOUT: Duration = Duration::from_secs(3600);

impl Client {
    /// Calls a tool as a task, at 2025-11-25: the server answers at once, and the result is
    /// [fetched](ClientTask::result) later. `tool` is the tool definition from the server's list,
    /// which says whether the tool supports tasks; `arguments` must serialize to an object.
    ///
    /// Dropping the call before its answer does not cancel the call, but cancels its task as soon
    /// as the task has an id.
    // MCP 2025-11-25 basic/utilities/tasks#tool-level-negotiation [TASK-003] [TASK-004]
    #[must_use = "await it"]
    pub fn call_tool_as_task<A: Serialize + ?Sized>(&self, tool: &Tool, arguments: &A) -> TaskCall {
        let support = tool.execution.as_ref().and_then(|execution| execution.task_support.as_ref());
        let possible = matches!(support, Some(TaskSupport::Optional | TaskSupport::Required));
        let call = if possible {
            self.call_tool(&tool.name, arguments).for_task()
        } else {
            let why = ClientError::NoTaskSupport { tool: tool.name.clone() };
            self.not_sent(Method::ToolsCall, why)
        };
        TaskCall { client: self.clone(), call, ttl: None, fields: Ok(HeaderFields::new()) }
    }

    /// Returns a handle to a task with a known id, for example from an earlier connection. Sends
    /// nothing.
    #[must_use]
    pub fn task(&self, name: impl Into<String>) -> ClientTask {
        ClientTask {
            client: self.clone(),
            name: name.into(),
            created: None,
            progress: None,
            fields: Ok(HeaderFields::new()),
        }
    }

    /// Requests the status of a task, at 2025-11-25 and in the extension.
    #[must_use = "await it"]
    pub fn get_task(&self, name: &str) -> ClientCall<GetTaskResult> {
        self.about_task(Method::TasksGet, name)
    }

    /// Cancels a task, at 2025-11-25 and in the extension.
    // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-009]
    #[must_use = "await it"]
    pub fn cancel_task(&self, name: &str) -> ClientCall<CancelTaskResult> {
        self.about_task(Method::TasksCancel, name)
    }

    /// Lists one page of this client's tasks, at 2025-11-25.
    #[must_use = "await it"]
    pub fn list_tasks(&self, cursor: Option<&str>) -> ClientCall<ListTasksResult> {
        self.list(Method::TasksList, cursor)
    }

    // MCP 2025-11-25 basic/utilities/tasks#associating-task-related-messages [TASK-014]: only the
    // parameter names the task.
    fn about_task<T>(&self, method: Method, name: &str) -> ClientCall<T> {
        self.start_typed(method, &TaskIdParams::new(name))
    }
}

/// A tool call as a task, before it is sent: set its options, then await it.
#[must_use = "a call is made when it is awaited"]
#[derive(Debug)]
pub struct TaskCall {
    client: Client,
    call: ClientCall<CreateTaskResult>,
    ttl: Option<Duration>,
    fields: TaskFields,
}

/// The header fields of the requests about a task, or why one is not allowed.
type TaskFields = Result<HeaderFields, InvalidHeader>;

impl TaskCall {
    /// Requests that the server keeps the task for `ttl` after its creation; the server may choose
    /// another time.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets how long to wait for the creation of the task; the wait for its result is not included.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.call = self.call.timeout(timeout);
        self
    }

    /// Requests progress and passes it to `callback`, which must return quickly, for as long as the
    /// [`ClientTask`] exists.
    // MCP 2025-11-25 basic/utilities/progress#behavior-requirements [PROG-010]
    pub fn on_progress(mut self, callback: impl FnMut(&Progress<'_>) + Send + 'static) -> Self {
        self.call = self.call.on_progress(callback);
        self
    }

    /// Adds members to `_meta`.
    pub fn meta(mut self, meta: RawJson<'_>) -> Self {
        self.call = self.call.meta(meta);
        self
    }

    /// Adds a header field to the HTTP requests of this call and to those about its task: see
    /// [`ClientCall::header`].
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.fields = self.fields.and_then(|fields| fields.field(name, value));
        self.call = self.call.header(name, value);
        self
    }
}

impl IntoFuture for TaskCall {
    type Output = Result<ClientTask, ClientError>;
    type IntoFuture = TaskFuture;

    fn into_future(self) -> TaskFuture {
        let call = self.call.run_as_task(self.ttl).into_future();
        TaskFuture { client: self.client, call, fields: self.fields }
    }
}

/// Resolves to a task. Dropping it earlier cancels the task as soon as the task has an id.
#[must_use = "await it"]
#[derive(Debug)]
pub struct TaskFuture {
    client: Client,
    call: CallFuture<CreateTaskResult>,
    fields: TaskFields,
}

impl Future for TaskFuture {
    type Output = Result<ClientTask, ClientError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let created = core::task::ready!(Pin::new(&mut self.call).poll(cx))?;
        let progress = self.call.pending();
        progress.claim_task();
        let (client, created) = (self.client.clone(), Some(created));
        let name = created.as_ref().map(|it| it.task.task_id.clone()).unwrap_or_default();
        Poll::Ready(Ok(ClientTask {
            client,
            name,
            created,
            progress: Some(progress),
            fields: self.fields.clone(),
        }))
    }
}

impl Drop for TaskFuture {
    // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-009]
    fn drop(&mut self) {
        // Middleware may have read the answer and still be running.
        let pending = self.call.pending();
        if pending.has_unclaimed_task() {
            self.client.let_go(pending);
        }
    }
}

/// A task at a server of 2025-11-25. Dropping it does not stop the task, only its progress
/// callback.
pub struct ClientTask {
    client: Client,
    name: String,
    created: Option<CreateTaskResult>,
    /// The call that receives the task's progress.
    progress: Option<Arc<Pending>>,
    fields: TaskFields,
}

impl ClientTask {
    /// Adds a header field to the HTTP requests about the task: see [`ClientCall::header`]. A task
    /// has those of [its call](TaskCall::header) already.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.fields = core::mem::replace(&mut self.fields, Ok(HeaderFields::new()))
            .and_then(|fields| fields.field(name, value));
        self
    }

    /// Adds the header fields to a request about the task.
    fn with_fields<T>(&self, call: ClientCall<T>) -> ClientCall<T> {
        call.header_fields(self.fields.clone())
    }

    /// Returns the task id: save it to find the task again from another connection.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the result of the call that created the task; `None` if the task was looked up by
    /// its id.
    #[must_use]
    pub const fn created(&self) -> Option<&CreateTaskResult> {
        self.created.as_ref()
    }

    /// Requests the status of the task.
    #[must_use = "await it"]
    pub fn status(&self) -> ClientCall<GetTaskResult> {
        self.with_fields(self.client.get_task(&self.name))
    }

    /// Cancels the task. If it has already ended, the server answers with an error.
    #[must_use = "await it"]
    pub fn cancel(&self) -> ClientCall<CancelTaskResult> {
        self.with_fields(self.client.cancel_task(&self.name))
    }

    /// Waits for the result: polls the status as often as the server allows, and fetches the result
    /// once the task has ended. Input requests of the task are passed to the host as usual.
    /// Dropping the future does not affect the task; call this method again.
    ///
    /// # Errors
    ///
    /// [`ClientError::as_refusal`] returns the error that the call would have ended with. For a
    /// task that was cancelled or has expired, it returns the server's error.
    // MCP 2025-11-25 basic/utilities/tasks#getting-tasks [TASK-012]
    // MCP 2025-11-25 basic/utilities/tasks#input-required-status [TASK-015]
    // MCP 2025-11-25 basic/utilities/tasks#task-notifications [TASK-016]: polling does not rely on
    // notifications of the server.
    pub async fn result(&self) -> Result<CallToolResult, ClientError> {
        let mut known = self.created.as_ref().map(|created| created.task.clone());
        loop {
            if let Some(pause) = known.as_ref().filter(|task| !has_result(task)).map(poll_interval)
            {
                self.client.sleep(pause).await?;
            }
            let task = self.status().await?.detailed.task;
            if has_result(&task) {
                let call = self.client.about_task(Method::TasksResult, &self.name);
                let call = self.with_fields(call);
                match call.timeout(POLL_TIMEOUT).timeout_hard(POLL_TIMEOUT).await {
                    // The task may still be working after its input request was answered.
                    Err(ClientError::Failed(Failure::TimedOut { .. })) => {}
                    result => return result,
                }
            }
            known = Some(task);
        }
    }
}

/// Whether the result can be requested.
fn has_result(task: &Task) -> bool {
    task.status.is_terminal() || task.status == TaskStatus::InputRequired
}

/// Returns how long to wait before the next status request.
pub(super) fn poll_interval(task: &Task) -> Duration {
    let pause = task.poll_interval_ms.map_or(POLL_INTERVAL, Duration::from_millis);
    pause.clamp(POLL_INTERVAL_MIN, POLL_INTERVAL_MAX)
}

impl fmt::Debug for ClientTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTask").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for ClientTask {
    fn drop(&mut self) {
        if let Some(call) = self.progress.take() {
            self.client.let_go(call);
        }
    }
}
