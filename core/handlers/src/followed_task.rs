//! Calls that become tasks of the extension `io.modelcontextprotocol/tasks`, followed to their end.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use mcp_sansio::jsonrpc::{AsJson, ErrorCode, ErrorObject, Json, RawJson};
use mcp_sansio::peer::{ClientMachine, Failure, HeaderFields, MethodName, TransportFailure};
use mcp_sansio::protocol::{
    CreateTaskResult, DetailedTask, EmptyResult, GetTaskResult, InputRequest, InputResponse,
    InputResponses, Method, SerializeAt as _, TASKS_EXTENSION, Task, TaskStatus, UpdateTaskParams,
};
use mcp_sansio::{Instant, Revision};

use super::client::{Client, ClientError, Command};
use super::client_endpoint::ClientEndpoint;
use super::client_tasks::{POLL_INTERVAL_MAX, poll_interval};
use super::context::RequestParts;
use super::host::Host;
use super::host_answers::Asked;
use super::pending::{CallFuture, ClientCall, Pending};
use super::reply::Outcome;
use super::threading::Threading;

/// How many status requests in a row may fail before the call does. 10: a server behind a load
/// balancer, or its store, is back by then.
const FAILED_POLLS_MAX: u32 = 10;

impl<K: Threading> Host<K> {
    /// Lets servers of 2026-07-28 continue tool calls as tasks, and follows these to their end:
    /// [`Client::call_tool`] returns the result as usual. It polls as often as the server allows, and
    /// passes the task's input requests to the handlers of the host.
    ///
    /// Dropping the future of the call cancels the task. The timeouts of the call apply until it is a
    /// task; a task ends when its server says so, at the latest after its lifetime. If the server cannot
    /// answer for the moment, it is asked again, up to ten times in a row.
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
pub(super) struct FollowedTask(Pin<Box<dyn Future<Output = Result<Json, ClientError>> + Send>>);

impl FollowedTask {
    /// Follows the task that a result of `tools/call` contains, if it contains one.
    pub(super) fn from_result(
        client: &Client,
        result: &RawJson<'_>,
        fields: &HeaderFields,
    ) -> Option<Self> {
        if result.get("resultType")?.as_str() != r#""task""# {
            return None;
        }
        let created: CreateTaskResult = result.decode().ok()?;
        let requests = TaskRequests { client: client.clone(), fields: Clone::clone(fields) };
        Some(Self(Box::pin(follow(requests, created.task))))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Json, ClientError>> {
        self.0.as_mut().poll(cx)
    }
}

impl core::fmt::Debug for FollowedTask {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FollowedTask")
    }
}

/// Follows a task, and returns the result of its call.
// MCP 2026-07-28 ext-tasks:tasks#task-polling [TASK-043]
async fn follow(requests: TaskRequests, mut task: Task) -> Result<Json, ClientError> {
    let client = &requests.client;
    let name = Some(task.task_id.clone());
    let mut cancel = CancelOnDrop { requests: requests.clone(), name };
    let mut answered = BTreeSet::new();
    let mut unsent = InputResponses::new();
    let (mut failed, mut unsent_failed, mut pause) = (0, 0, poll_interval(&task));
    loop {
        // The result of a task that has ended is available at once, unless it was asked for already.
        if !task.status.is_terminal() || failed > 0 {
            client.sleep(pause).await?;
        }
        pause = poll_interval(&task);
        let found = requests.with_fields(client.get_task(&task.task_id)).await;
        let GetTaskResult { detailed, .. } = match found {
            Err(ClientError::Failed(failure)) if failed < FAILED_POLLS_MAX => {
                let Some(retry_after) = retry_after(&failure) else {
                    return Err(ClientError::Failed(failure));
                };
                (failed, pause) = (failed + 1, pause.max(retry_after.min(POLL_INTERVAL_MAX)));
                continue;
            }
            found => found?,
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
                        let response = client.ask_host(key, request).await?;
                        unsent.insert(key, InputResponse::Unknown(response));
                        answered.insert(key.to_string());
                    }
                }
                if !unsent.is_empty() {
                    let update = client.update_task(&task.task_id, unsent.clone());
                    match requests.with_fields(update).await {
                        Err(ClientError::Failed(failure)) if unsent_failed < FAILED_POLLS_MAX => {
                            let Some(retry_after) = retry_after(&failure) else {
                                return Err(ClientError::Failed(failure));
                            };
                            unsent_failed += 1;
                            pause = pause.max(retry_after.min(POLL_INTERVAL_MAX));
                        }
                        sent => {
                            sent?;
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

/// Returns how long to wait at least before a status request is repeated, if its failure says nothing
/// about the task.
fn retry_after(failure: &Failure<'_>) -> Option<Duration> {
    match failure {
        Failure::Refused(error) if error.code == ErrorCode::INTERNAL_ERROR => Some(Duration::ZERO),
        Failure::TimedOut { .. }
        | Failure::Transport(TransportFailure::NotSent | TransportFailure::Broken) => {
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
        let pending = Pending::new().with_fields(self.requests.fields.clone());
        let pending = Arc::new(pending);
        if pending.write(&AsJson(&TaskName { task_id: &name })).is_ok() {
            let method = MethodName::Known(Method::TasksCancel);
            self.requests.client.send(Command::Call { pending, method });
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
    pub(super) fn ask_for_task(&mut self, pending: Arc<Pending>, method: Method, now: Instant) {
        let Some((_, params)) = pending.begin() else {
            return pending.end(Err(ClientError::Failed(Failure::Cancelled)));
        };
        let Some(function) = self.handlers.of_input(method).cloned() else {
            let error = ErrorObject::method_not_found(method.as_str());
            return pending.end(Err(ClientError::Failed(Failure::Refused(error))));
        };
        let revision = self.machine.session().map_or(Revision::LATEST, |it| it.revision());
        let params = RawJson::trusted_string(params);
        let parts = RequestParts::from_task(&params, revision, self.default_spawner);
        self.run(Asked::Task(pending), &function, parts, now);
    }

    /// Returns the answer of the host to an input request of a task.
    pub(super) fn answer_task(&self, pending: &Pending, outcome: Outcome) {
        let revision = self.machine.session().map_or(Revision::LATEST, |it| it.revision());
        let error = match outcome {
            Outcome::Result(body) => match body.to_json_at(revision) {
                Ok(answer) => return pending.end(Ok(answer.as_raw())),
                Err(error) => ErrorObject::internal(error.to_string()),
            },
            Outcome::Error(error) => error,
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
        default_spawner: Option<fn(mcp_sansio::Job)>,
    ) -> Self {
        Self {
            params,
            revision,
            call: None,
            states: None,
            spawner: None,
            default_spawner,
            cancelled: None,
            observation: None,
        }
    }
}
