//! Tasks from a client's side, at 2025-11-25: calls of tools that go on at the server, whose result
//! is fetched later.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{Failure, Progress};
use mcp_sansio::protocol::{
    CallToolResult, CancelTaskResult, CreateTaskResult, GetTaskResult, ListTasksResult, Method,
    Task, TaskIdParams, TaskStatus, TaskSupport, Tool,
};
use serde::Serialize;

use super::client::{Client, ClientError};
use super::pending::{CallFuture, ClientCall, Pending};

/// How long to wait between questions for a status where the server does not say.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The least pause, whatever the server says: one that says none would be asked without end.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// How long to wait for a result where the server keeps the task without end.
const POLL_TIMEOUT: Duration = Duration::from_secs(3600);

impl Client {
    /// Calls a tool as a task, at 2025-11-25: the server answers at once, and the result is
    /// [fetched](ClientTask::result) later. `tool` is the tool as the server lists it, which says
    /// whether that is possible; `arguments` serialise to an object.
    ///
    /// Dropped before there is an answer, the call is not cancelled, but its task, as soon as it
    /// has a name.
    // MCP 2025-11-25 basic/utilities/tasks#tool-level-negotiation [TASK-003] [TASK-004]
    #[must_use = "await it"]
    pub fn call_tool_as_task<A: Serialize + ?Sized>(&self, tool: &Tool, arguments: &A) -> TaskCall {
        let support = tool.execution.as_ref().and_then(|execution| execution.task_support.as_ref());
        let possible = matches!(support, Some(TaskSupport::Optional | TaskSupport::Required));
        let call = if possible {
            self.call_tool(&tool.name, arguments).for_task()
        } else {
            let why = alloc::format!("the tool {:?} never runs as a task", tool.name);
            self.not_sent(Method::ToolsCall, why)
        };
        TaskCall { client: self.clone(), call, ttl: None }
    }

    /// A task that is known by its name, from an earlier connection say. Nothing is sent.
    #[must_use]
    pub fn task(&self, name: impl Into<String>) -> ClientTask {
        ClientTask { client: self.clone(), name: name.into(), created: None, progress: None }
    }

    /// How far a task is, at 2025-11-25 as in the extension.
    #[must_use = "await it"]
    pub fn get_task(&self, name: &str) -> ClientCall<GetTaskResult> {
        self.about_task(Method::TasksGet, name)
    }

    /// Cancels a task, at 2025-11-25 as in the extension.
    // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-009]
    #[must_use = "await it"]
    pub fn cancel_task(&self, name: &str) -> ClientCall<CancelTaskResult> {
        self.about_task(Method::TasksCancel, name)
    }

    /// One page of this client's tasks, at 2025-11-25.
    #[must_use = "await it"]
    pub fn list_tasks(&self, cursor: Option<&str>) -> ClientCall<ListTasksResult> {
        self.list(Method::TasksList, cursor)
    }

    // MCP 2025-11-25 basic/utilities/tasks#associating-task-related-messages [TASK-014]: named by the
    // parameter alone.
    fn about_task<T>(&self, method: Method, name: &str) -> ClientCall<T> {
        self.start_typed(method, &TaskIdParams::new(name))
    }
}

/// A call of a tool as a task that is about to be made: set what it needs, then await it.
#[must_use = "a call is made when it is awaited"]
#[derive(Debug)]
pub struct TaskCall {
    client: Client,
    call: ClientCall<CreateTaskResult>,
    ttl: Option<Duration>,
}

impl TaskCall {
    /// For how long the server is to keep the task, from its making on; it may choose another time.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// How long to wait for the task; not for its result.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.call = self.call.timeout(timeout);
        self
    }

    /// Asks for progress and shows it to `callback`, which must be quick, for as long as there is
    /// the [`ClientTask`].
    // MCP 2025-11-25 basic/utilities/progress#behavior-requirements [PROG-010]
    pub fn on_progress(mut self, callback: impl FnMut(&Progress<'_>) + Send + 'static) -> Self {
        self.call = self.call.on_progress(callback);
        self
    }

    /// Members for `_meta`.
    pub fn meta(mut self, meta: RawJson<'_>) -> Self {
        self.call = self.call.meta(meta);
        self
    }
}

impl IntoFuture for TaskCall {
    type Output = Result<ClientTask, ClientError>;
    type IntoFuture = TaskFuture;

    fn into_future(self) -> TaskFuture {
        let call = self.call.run_as_task(self.ttl).into_future();
        TaskFuture { client: self.client, call }
    }
}

/// Resolves to a task. Dropped before that, it cancels the task as soon as that has a name.
#[must_use = "await it"]
#[derive(Debug)]
pub struct TaskFuture {
    client: Client,
    call: CallFuture<CreateTaskResult>,
}

impl Future for TaskFuture {
    type Output = Result<ClientTask, ClientError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let created = core::task::ready!(Pin::new(&mut self.call).poll(cx))?;
        let progress = self.call.pending();
        let (client, created) = (self.client.clone(), Some(created));
        let name = created.as_ref().map(|it| it.task.task_id.clone()).unwrap_or_default();
        Poll::Ready(Ok(ClientTask { client, name, created, progress: Some(progress) }))
    }
}

/// A task at a server of 2025-11-25. It goes on when this is dropped; only its progress is not shown
/// any more.
pub struct ClientTask {
    client: Client,
    name: String,
    created: Option<CreateTaskResult>,
    /// The call whose progress goes on.
    progress: Option<Arc<Pending>>,
}

impl ClientTask {
    /// What the server knows it by: keep it to come back to the task from another connection.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the call was answered with; `None` of a task that was known by its name.
    #[must_use]
    pub const fn created(&self) -> Option<&CreateTaskResult> {
        self.created.as_ref()
    }

    /// How far it is.
    #[must_use = "await it"]
    pub fn status(&self) -> ClientCall<GetTaskResult> {
        self.client.get_task(&self.name)
    }

    /// Cancels it. One that is over already is not cancelled: the server says so with an error.
    #[must_use = "await it"]
    pub fn cancel(&self) -> ClientCall<CancelTaskResult> {
        self.client.cancel_task(&self.name)
    }

    /// Waits for the result: asks how far the task is as often as the server wants to be asked, and
    /// fetches the result once there is one. What the task wants to know meanwhile is asked of the
    /// host, as ever. Dropped, it may be called again; the task goes on.
    ///
    /// # Errors
    ///
    /// [`ClientError::as_refusal`] gives the error that the call would have ended with, or, of a
    /// task that was cancelled or is not there any more, what the server says of that.
    // MCP 2025-11-25 basic/utilities/tasks#getting-tasks [TASK-012]
    // MCP 2025-11-25 basic/utilities/tasks#input-required-status [TASK-015]
    // MCP 2025-11-25 basic/utilities/tasks#task-notifications [TASK-016]: whatever the server tells
    // unasked.
    pub async fn result(&self) -> Result<CallToolResult, ClientError> {
        let mut known = self.created.as_ref().map(|created| created.task.clone());
        loop {
            if let Some(pause) = known.as_ref().and_then(poll_interval) {
                self.client.sleep(pause).await?;
            }
            let task = self.status().await?.detailed.task;
            if poll_interval(&task).is_none() {
                let patience = task.ttl_ms.map_or(POLL_TIMEOUT, Duration::from_millis);
                let call = self.client.about_task(Method::TasksResult, &self.name);
                match call.timeout(patience).timeout_hard(patience).await {
                    // It may go on, having been answered.
                    Err(ClientError::Failed(Failure::TimedOut { .. })) => {}
                    result => return result,
                }
            }
            known = Some(task);
        }
    }
}

/// How long to wait before asking for a task again; `None` of one whose result is to be asked for.
fn poll_interval(task: &Task) -> Option<Duration> {
    if task.status.is_terminal() || task.status == TaskStatus::InputRequired {
        return None;
    }
    let pause = task.poll_interval_ms.map_or(POLL_INTERVAL, Duration::from_millis);
    Some(pause.max(POLL_INTERVAL_MIN))
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
