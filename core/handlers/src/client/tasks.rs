//! Tasks from the client's side: tool calls that continue at the server. At 2025-11-25 the
//! application fetches the result later; with the extension, the call itself follows its task to
//! the end.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use mcp_sansio::jsonrpc::{AsJson, ErrorObject, Json, RawJson};
use mcp_sansio::peer::{
    ClientMachine, Failure, HeaderFields, InvalidHeader, Progress, TransportFailure,
};
use mcp_sansio::protocol::{
    CallToolResult, CancelTaskResult, CreateTaskResult, DetailedTask, EmptyResult, GetTaskResult,
    InputRequest, InputResponse, InputResponses, ListTasksResult, SerializeAt as _,
    TASKS_EXTENSION, Task, TaskIdParams, TaskStatus, TaskSupport, Tool, UpdateTaskParams,
};
use mcp_sansio::{ErrorCode, Instant, Method, Revision};
use serde::Serialize;

use super::endpoint::ClientEndpoint;
use super::host::{Asked, Host};
use super::pending::{CallFuture, ClientCall, Pending};
use super::{Client, ClientError, Command};
use crate::context::RequestParts;
use crate::executor::PanicGuard;
use crate::reply::Outcome;
use crate::threading::Threading;

/// How long to wait between status requests if the server does not say.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The least pause between status requests, whatever interval the server gives: an interval of zero
/// would cause a busy loop.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// The longest pause between status requests, whatever interval the server gives, and whatever it
/// asks for with `Retry-After`: an hour. The caller gets a result at most that much later.
pub(crate) const POLL_INTERVAL_MAX: Duration = Duration::from_secs(3600);

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
                    Err(ClientError::TimedOut { .. }) => {}
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
pub(crate) fn poll_interval(task: &Task) -> Duration {
    let pause = task.poll_interval_ms.map_or(POLL_INTERVAL, Duration::from_millis);
    pause.clamp(POLL_INTERVAL_MIN, POLL_INTERVAL_MAX)
}

mcp_sansio::partial_debug! { impl Debug for ClientTask { name, .. } }

impl Drop for ClientTask {
    fn drop(&mut self) {
        if let Some(call) = self.progress.take() {
            self.client.let_go(call);
        }
    }
}

// ------------------------------------------------------------------ tasks of the extension, followed to their end

/// How many status requests in a row may fail before the call does. 10: a server behind a load
/// balancer, or its store, is back by then.
const FAILED_POLLS_MAX: u32 = 10;

impl<K: Threading> Host<K> {
    /// Lets servers of 2026-07-28 continue tool calls as tasks, and follows these to their end:
    /// [`Client::call_tool`] returns the result as usual. It polls as often as the server allows,
    /// and passes the task's input requests to the handlers of the host.
    ///
    /// Dropping the future of the call cancels the task. The timeouts of the call apply until it is
    /// a task; a task ends when its server says so, at the latest after its lifetime. If the server
    /// cannot answer for the moment, it is asked again, up to ten times in a row.
    ///
    /// By default a host does not declare the extension, so that a call takes no longer than its
    /// timeout.
    ///
    /// ```
    /// use mcp_sansio_handlers::{Call, Host, NoArguments, Server, TaskSettings};
    ///
    /// # async fn hours_later() {}
    /// # let (entropy, unix_time) = (|| [7; 16], core::time::Duration::from_secs(1_800_000_000));
    /// let settings = TaskSettings::new(entropy, unix_time);
    /// let server = Server::new("reports", "1.0.0").tasks(settings).tool(
    ///     "report",
    ///     "Writes a report",
    ///     async |call: Call<NoArguments>| {
    ///         call.run_as_task();
    ///         hours_later().await;
    ///         "42 pages"
    ///     },
    /// );
    /// let host = Host::new("demo", "1.0.0").follow_tasks();
    /// # let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
    /// # let application = async {
    /// let report = client.call_tool("report", &NoArguments {}).await?;
    /// assert_eq!(report.first_text(), Some("42 pages"));
    /// # Ok::<(), mcp_sansio_handlers::ClientError>(()) };
    /// # pair.run(application)?;
    /// # Ok::<(), mcp_sansio_handlers::ClientError>(())
    /// ```
    // MCP 2026-07-28 ext-tasks:tasks#capability-negotiation [TASK-024]
    #[must_use]
    pub fn follow_tasks(mut self) -> Self {
        let extensions = self.options.capabilities_mut().extensions.get_or_insert_default();
        extensions.insert(TASKS_EXTENSION, RawJson::EMPTY_OBJECT);
        self.follows_tasks = true;
        self
    }
}

/// A task that is followed.
pub(crate) struct FollowedTask(Pin<Box<dyn Future<Output = Result<Json, ClientError>> + Send>>);

impl FollowedTask {
    /// Follows the task that a result of `tools/call` contains, if it contains one.
    pub(crate) fn from_result(
        client: &Client,
        result: &RawJson<'_>,
        fields: &HeaderFields,
    ) -> Option<Self> {
        if result.get("resultType")?.as_str() != r#""task""# {
            return None;
        }
        let created = client.decode::<CreateTaskResult>(result);
        let requests = TaskRequests { client: client.clone(), fields: Clone::clone(fields) };
        let name = result.get("taskId").and_then(|id| id.to_text().map(String::from));
        Some(Self(Box::pin(async {
            match created {
                Ok(created) => follow(requests, created.task).await,
                Err(error) => {
                    drop(CancelOnDrop { requests, name });
                    Err(ClientError::TaskLost(Box::new(error)))
                }
            }
        })))
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Json, ClientError>> {
        self.0.as_mut().poll(cx)
    }
}

mcp_sansio::partial_debug! { impl Debug for FollowedTask }

/// Follows a task, and returns the result of its call. Errors of the requests about it are
/// [`ClientError::TaskLost`]: they say nothing about the call.
// MCP 2026-07-28 ext-tasks:tasks#task-polling [TASK-043]
async fn follow(requests: TaskRequests, mut task: Task) -> Result<Json, ClientError> {
    let client = &requests.client;
    let name = Some(task.task_id.clone());
    let mut cancel = CancelOnDrop { requests: requests.clone(), name };
    let mut answered = BTreeSet::new();
    let mut unsent = InputResponses::new();
    let (mut failed, mut unsent_failed, mut pause) = (0, 0, poll_interval(&task));
    loop {
        // The result of a task that has ended is available at once, unless it was asked for
        // already.
        if !task.status.is_terminal() || failed > 0 {
            client.sleep(pause).await.map_err(lost)?;
        }
        pause = poll_interval(&task);
        let found = requests.with_fields(client.get_task(&task.task_id)).await;
        let GetTaskResult { detailed, .. } = match found {
            Err(error) if failed < FAILED_POLLS_MAX => {
                let Some(retry_after) = retry_after(&error) else {
                    return Err(lost(error));
                };
                (failed, pause) = (failed + 1, pause.max(retry_after.min(POLL_INTERVAL_MAX)));
                continue;
            }
            found => found.map_err(lost)?,
        };
        failed = 0;
        let DetailedTask { task: now, input_requests, result, error, .. } = detailed;
        task = now;
        match task.status {
            TaskStatus::InputRequired => {
                // MCP 2026-07-28 ext-tasks:tasks#task-update-requests [TASK-032]
                for (key, request) in input_requests.iter().flat_map(|all| all.iter()) {
                    // The server may still list a request after it was answered.
                    if !answered.contains(key) {
                        let response = client.ask_host(key, request).await.map_err(lost)?;
                        unsent.insert(key, InputResponse::Unknown(response));
                        answered.insert(key.to_string());
                    }
                }
                if !unsent.is_empty() {
                    let update = client.update_task(&task.task_id, unsent.clone());
                    match requests.with_fields(update).await {
                        Err(error) if unsent_failed < FAILED_POLLS_MAX => {
                            let Some(retry_after) = retry_after(&error) else {
                                return Err(lost(error));
                            };
                            unsent_failed += 1;
                            pause = pause.max(retry_after.min(POLL_INTERVAL_MAX));
                        }
                        sent => {
                            sent.map_err(lost)?;
                            (unsent, unsent_failed) = (InputResponses::new(), 0);
                        }
                    }
                }
            }
            TaskStatus::Completed => {
                cancel.name = None;
                let missing = ClientError::Failed(Failure::InvalidAnswer("a task without result"));
                return result.ok_or(missing);
            }
            TaskStatus::Failed => {
                cancel.name = None;
                let error = error.and_then(|error| {
                    error.decode::<ErrorObject<'_>>().ok().map(|it| it.into_owned())
                });
                return Err(ClientError::Failed(match error {
                    Some(error) => Failure::Refused(error),
                    None => Failure::InvalidAnswer("a task that failed without error"),
                }));
            }
            TaskStatus::Cancelled => {
                cancel.name = None;
                return Err(ClientError::Failed(Failure::Cancelled));
            }
            _ => {}
        }
    }
}

/// Wraps an error that would say more about the call of a task than is known.
fn lost(error: ClientError) -> ClientError {
    match error.executed() {
        None => error,
        Some(_) => ClientError::TaskLost(Box::new(error)),
    }
}

/// Returns how long to wait at least before a status request is repeated, if its failure says
/// nothing about the task.
fn retry_after(error: &ClientError) -> Option<Duration> {
    let failure = match error {
        ClientError::TimedOut { .. } | ClientError::TooManyCommands => return Some(Duration::ZERO),
        // By the middleware of this host.
        ClientError::RateExceeded { retry_after } => return Some(*retry_after),
        ClientError::Failed(failure) => failure,
        _ => return None,
    };
    match failure {
        Failure::Refused(error) if error.code == ErrorCode::INTERNAL_ERROR => Some(Duration::ZERO),
        Failure::Transport(TransportFailure::NotSent | TransportFailure::Broken) => {
            Some(Duration::ZERO)
        }
        Failure::Transport(TransportFailure::Status {
            status: 429 | 502..=504,
            retry_after,
            ..
        }) => Some(retry_after.unwrap_or_default()),
        _ => None,
    }
}

/// Makes the requests about a task, with the header fields of its call.
#[derive(Clone)]
struct TaskRequests {
    client: Client,
    fields: HeaderFields,
}

impl TaskRequests {
    fn with_fields<T>(&self, call: ClientCall<T>) -> ClientCall<T> {
        call.header_fields(Ok(self.fields.clone()))
    }
}

/// Cancels a task that is no longer followed.
struct CancelOnDrop {
    requests: TaskRequests,
    /// `None` once the task has ended.
    name: Option<String>,
}

impl Drop for CancelOnDrop {
    // MCP 2026-07-28 ext-tasks:tasks#task-cancellation [TASK-034]
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        let pending = Pending::new().with_method(Method::TasksCancel);
        let pending = Arc::new(pending.with_fields(self.requests.fields.clone()));
        if pending.write(&AsJson(&TaskName { task_id: &name })).is_ok() {
            self.requests.client.send(Command::Call { pending, is_cleanup: true });
        }
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskName<'a> {
    task_id: &'a str,
}

impl Client {
    /// Passes an input request of a task to the handlers of the host.
    async fn ask_host(&self, key: &str, request: &InputRequest) -> Result<Json, ClientError> {
        let refused =
            |error| ClientError::Failed(Failure::InputRefused { key: key.to_string(), error });
        let method =
            request.method().ok_or_else(|| refused(ErrorObject::method_not_found("unknown")))?;
        let pending = Arc::new(Pending::new());
        let revision = self.session().map_or(Revision::LATEST, |it| it.revision);
        let params = request.params().to_json_at(revision)?;
        pending.write(&params.as_raw())?;
        self.send(Command::AskHost { pending: Arc::clone(&pending), method });
        let asked: CallFuture<Json> = CallFuture::new(self.clone(), pending);
        asked.await.map_err(|error| match error {
            ClientError::Failed(Failure::Refused(error)) => refused(error),
            other => other,
        })
    }

    fn update_task(&self, name: &str, responses: InputResponses) -> ClientCall<EmptyResult> {
        self.start_typed(Method::TasksUpdate, &UpdateTaskParams::new(name, responses))
    }
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    /// Passes an input request of a task to the handlers of the host, as one of a call.
    pub(crate) fn ask_for_task(&mut self, pending: Arc<Pending>, method: Method, now: Instant) {
        let Some((_, _, params)) = pending.begin() else {
            return pending.end(Err(ClientError::Failed(Failure::Cancelled)));
        };
        let Some(function) = self.handlers.of_input(method).cloned() else {
            let error = ErrorObject::method_not_found(method.as_str());
            return pending.end(Err(ClientError::Failed(Failure::Refused(error))));
        };
        let revision = self.machine.session().map_or(Revision::LATEST, |it| it.revision());
        let params = RawJson::trusted_string(params);
        let spawner = self.spawner.clone();
        let parts = RequestParts::from_task(&params, revision, spawner.as_ref());
        self.run(Asked::Task(pending), method.as_str().into(), &function, parts, now);
    }

    /// Returns the answer of the host to an input request of a task.
    pub(crate) fn answer_task(&self, pending: &Pending, outcome: Outcome) {
        let revision = self.machine.session().map_or(Revision::LATEST, |it| it.revision());
        let error = match outcome {
            Outcome::Result(body) => match body.to_json_at(revision) {
                Ok(answer) => return pending.end(Ok(answer.as_raw())),
                Err(error) => ErrorObject::internal(error.to_string()),
            },
            Outcome::Error(error) => error,
            Outcome::Panicked(panicked) => panicked.into(),
            Outcome::Refused(refusal) => refusal.error,
            Outcome::InputRequired(_) => {
                ErrorObject::internal("a host's handler cannot ask for input")
            }
        };
        pending.end(Err(ClientError::Failed(Failure::Refused(error))));
    }
}

impl<'r, 'f> RequestParts<'r, 'f> {
    /// The parts of a task's input request.
    const fn from_task(
        params: &'r RawJson<'f>,
        revision: Revision,
        spawner: Option<&'r mcp_sansio::Spawner>,
    ) -> Self {
        Self {
            params,
            revision,
            call: None,
            states: None,
            spawner,
            guard: PanicGuard::NONE,
            cancelled: None,
            observation: None,
            server: None,
        }
    }
}
