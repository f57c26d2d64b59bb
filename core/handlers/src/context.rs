use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::any::Any;
use core::ops::Deref;
use core::time::Duration;

use mcp_sansio::catalog::{Lists, Target, TemplateMatch};
use mcp_sansio::jsonrpc::{Json, JsonError, RawJson, RequestId};
use mcp_sansio::peer::{
    InputRequested, InputResponseParams, Request, RequestHandle, ServerSession,
};
use mcp_sansio::protocol::GetPromptResult;
use mcp_sansio::protocol::ReadResourceResult;
use mcp_sansio::protocol::{CallToolResult, Implementation, Meta};
use mcp_sansio::{
    Caller, Capabilities, Capability, LoggingLevel, Method, Principal, Revision, SessionKey,
    Spawner,
};
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::executor::PanicGuard;
use super::mailbox::{Command, Mailbox, SendError};
use super::reply::HandlerError;
use super::server_item::CatalogEdit;
use super::state::StateMap;

/// A request to a server or a host, before its handler decodes it.
pub struct RequestParts<'r, 'f> {
    pub(super) params: &'r RawJson<'f>,
    pub(super) revision: Revision,
    /// The parts that only handlers of a server get; `None` for a request to a host.
    pub(super) call: Option<&'r Incoming<'r, 'f>>,
    /// The states of the server, if it has any.
    pub(super) states: Option<&'r dyn StateMap>,
    /// Where blocking handlers run; `None` runs them in place.
    pub(super) spawner: Option<&'r Spawner>,
    /// The guard that blocking handlers run in.
    pub(super) guard: PanicGuard,
    /// Set when a blocking handler's answer is no longer needed.
    pub(super) cancelled: Option<Arc<AtomicBool>>,
    /// The observation of the request, if this side has an observer.
    pub(super) observation: Option<&'r crate::executor::SharedObservation>,
    /// The server that asks a host, if the host knows its name.
    pub(super) server: Option<&'r Arc<str>>,
}

/// The source of a log message: its level, and the name of its logger, if it has one.
#[derive(Clone, Copy, Debug)]
pub struct LogSource<'l> {
    level: LoggingLevel,
    logger: Option<&'l str>,
}

impl From<LoggingLevel> for LogSource<'_> {
    fn from(level: LoggingLevel) -> Self {
        Self { level, logger: None }
    }
}

impl<'l> From<(LoggingLevel, &'l str)> for LogSource<'l> {
    fn from((level, logger): (LoggingLevel, &'l str)) -> Self {
        Self { level, logger: Some(logger) }
    }
}

impl LogSource<'_> {
    /// Returns the command that sends a log message.
    pub(super) fn message<D: Serialize + ?Sized>(
        self,
        request: Option<RequestHandle>,
        data: &D,
    ) -> Option<Command> {
        // Data that cannot be serialized is a bug of the server, which the client need not see.
        let data = Json::from_serialize(data).ok()?;
        let (level, logger) = (self.level, self.logger.map(String::from));
        Some(Command::Log { request, level, logger, data })
    }
}

/// A request to a server, with the other inputs of its handler.
pub(super) struct Incoming<'r, 'f> {
    pub(super) request: &'r Request<'f>,
    /// The queue for commands of the handler to the connection.
    pub(super) commands: &'r CommandSender,
    /// Whether the server's settings allow the request to become a task.
    pub(super) tasks: bool,
    /// Whether the request already is a task.
    pub(super) is_task: bool,
    /// The JSON-RPC id, unless the request is answered.
    pub(super) id: Option<&'r RequestId>,
    /// When the middleware ends the request.
    /// The lists of the server, for a list request.
    pub(super) lists: Option<&'r Lists>,
    /// The observation of the request, if the server has an observer.
    pub(super) observation: Option<&'r crate::executor::SharedObservation>,
    pub(super) details: Option<&'r Arc<RequestDetails>>,
}

/// The parts of a request that handlers get from servers that ask for them. Reading them takes
/// allocations, which other servers do without.
#[derive(Debug, Default)]
pub(super) struct RequestDetails {
    /// The extensions that the client declared, if the server has any.
    pub(super) client_extensions: Option<Json>,
    /// `{}` if the client sent none.
    pub(super) meta: Option<Json>,
    pub(super) client_info: Option<Json>,
}

/// Reads the details of a request, in a legacy session if there is one.
pub(super) type DetailsReader = fn(&Request<'_>, Option<&ServerSession>) -> RequestDetails;

/// Reads the details with the metadata.
pub(super) fn details_with_meta(
    request: &Request<'_>,
    session: Option<&ServerSession>,
) -> RequestDetails {
    let meta = request.params.get("_meta");
    let client_info = match session {
        Some(session) => Some(session.client_info().clone()),
        None => meta.as_ref().and_then(|meta| meta.get(Meta::CLIENT_INFO)).map(Json::from),
    };
    let meta = meta.filter(RawJson::is_object).unwrap_or(RawJson::EMPTY_OBJECT);
    let meta = Some(Json::from(meta));
    RequestDetails { meta, client_info, ..super::extension::details(request, session) }
}

impl RequestDetails {
    /// Returns the details of the same request with other parameters.
    pub(super) fn with_params(self: &Arc<Self>, params: &RawJson<'_>) -> Arc<Self> {
        if self.meta.is_none() {
            return Arc::clone(self);
        }
        let meta = params.get("_meta").filter(RawJson::is_object);
        let meta = meta.unwrap_or(RawJson::EMPTY_OBJECT);
        let (client_extensions, client_info) =
            (self.client_extensions.clone(), self.client_info.clone());
        Arc::new(Self { client_extensions, meta: Some(Json::from(meta)), client_info })
    }

    pub(super) fn meta(&self) -> RawJson<'_> {
        self.meta.as_ref().map_or(RawJson::EMPTY_OBJECT, Json::as_raw)
    }

    pub(super) fn client_info(&self) -> Option<Implementation> {
        // A malformed icon does not hide the name.
        self.client_info.as_ref()?.as_raw().decode_lossy().ok().map(|(info, _)| info)
    }
}

impl<'r, 'f> RequestParts<'r, 'f> {
    pub(super) const fn from_host_request(
        input: &'r InputRequested<'f>,
        spawner: Option<&'r Spawner>,
    ) -> Self {
        Self {
            params: &input.params,
            revision: input.revision,
            call: None,
            states: None,
            spawner,
            guard: PanicGuard::NONE,
            cancelled: None,
            observation: None,
            server: None,
        }
    }

    /// Returns the server's part. Fails for a server's handler that is called with a request to a
    /// host, which the types of [`Host`](super::Host) make impossible.
    fn call(&self) -> Result<&'r Incoming<'r, 'f>, HandlerError> {
        self.call.ok_or_else(|| {
            HandlerError::failed("the handler of a server was called with a request to a host")
        })
    }
}

mcp_sansio::partial_debug! { impl Debug for RequestParts<'_, '_> { params, revision, .. } }

/// The sender of a connection's command queue.
pub(super) type CommandSender = Arc<Mailbox<Command>>;

/// A handler's access to its request and its connection.
#[derive(Debug)]
pub struct Context {
    pub(super) handle: RequestHandle,
    revision: Revision,
    capabilities: Capabilities,
    wants_progress: bool,
    inputs: InputResponseParams<'static>,
    commands: CommandSender,
    cancelled: Option<Arc<AtomicBool>>,
    pub(super) caller: Caller,
    tasks: bool,
    is_task: bool,
    id: Option<RequestId>,
    observation: Option<crate::executor::SharedObservation>,
    pub(super) details: Option<Arc<RequestDetails>>,
}

impl Context {
    fn new(call: &Incoming<'_, '_>, cancelled: Option<Arc<AtomicBool>>) -> Self {
        let request = call.request;
        Self {
            handle: request.handle,
            revision: request.revision,
            capabilities: request.capabilities,
            wants_progress: request.wants_progress,
            inputs: if request.inputs.is_empty() {
                InputResponseParams::default()
            } else {
                request.inputs.clone().into_owned()
            },
            commands: Arc::clone(call.commands),
            cancelled,
            caller: request.caller.clone(),
            tasks: call.tasks && request.method == Method::ToolsCall,
            is_task: call.is_task,
            id: call.id.cloned(),
            observation: call.observation.cloned(),
            details: call.details.cloned(),
        }
    }

    /// Returns the revision that governs the request.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the capabilities that the client declared.
    #[must_use]
    pub const fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Whether the client asked for progress.
    #[must_use]
    pub const fn wants_progress(&self) -> bool {
        self.wants_progress
    }

    /// Returns the sender of the request, if the transport identifies it.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.caller.principal()
    }

    /// Returns the sender of the request with its permissions.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the value of this type that was attached to the request in front of the server: by a
    /// layer of the application, such as the user that it has authenticated, or by the adapter. See
    /// [`Caller::with_extension`] and the `extension` of the adapters' `HttpService`. On a
    /// protected server, [`Caller`] is the sender that the token's has replaced.
    #[must_use]
    pub fn extension<T: Any>(&self) -> Option<&T> {
        self.caller.extension()
    }

    /// Whether the request came over HTTP. Otherwise its transport is a byte stream.
    #[must_use]
    pub const fn is_http(&self) -> bool {
        !self.caller.is_owner()
    }

    /// Returns the metadata of the request, `_meta`: a JSON object, `{}` if the client sent none or
    /// the server does not [keep it](super::Server::keep_meta).
    #[must_use]
    pub fn meta(&self) -> RawJson<'_> {
        self.details.as_ref().map_or(RawJson::EMPTY_OBJECT, |details| details.meta())
    }

    /// Returns the client's description of itself, which nothing verifies; `None` if it has none or
    /// the server does not [keep it](super::Server::keep_meta).
    // MCP 2026-07-28 basic/index#_meta [SEC-013]
    #[must_use]
    pub fn client_info(&self) -> Option<Implementation> {
        self.details.as_ref()?.client_info()
    }

    /// Returns the key of the session that the request belongs to: on HTTP a legacy session, on a
    /// byte stream the connection of a legacy client. `None` for a request of 2026-07-28, which
    /// belongs to no session.
    ///
    /// The key stays the same for as long as the session lives. To keep something for the session,
    /// use it as the key of a map; to offer an item to this session alone, see
    /// [`ServerItem::for_session`](super::ServerItem::for_session).
    // MCP 2026-07-28 changelog#major-changes [SESS-016]
    #[must_use]
    pub const fn session(&self) -> Option<SessionKey> {
        self.caller.session()
    }

    /// Returns the JSON-RPC id, which the client chose: requests of different clients may have the
    /// same id. For logs. `None` for a handler that is called again for a task, whose request is
    /// answered.
    #[must_use]
    pub const fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// Returns the observation of the request, if the server has an
    /// [observer](super::Server::observe_operations).
    #[must_use]
    pub fn observation(&self) -> Option<&dyn mcp_sansio::peer::Observation> {
        self.observation.as_deref()
    }

    /// Whether the answer is no longer needed. For [`blocking`](super::blocking()) handlers; an
    /// `async` one is dropped at its current await point.
    // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-017]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
    }

    /// Reports progress, in units of the handler's choice; each value must be greater than the
    /// previous one. Does nothing if the client did not ask for progress or reads too slowly: see
    /// [`Limits`](mcp_sansio::peer::Limits). The message of a task's progress becomes its status
    /// message.
    // MCP 2026-07-28 ext-tasks:tasks#task-status-notifications [TASK-038]: these tasks report no
    // progress.
    // MCP 2025-11-25 basic/utilities/progress#behavior-requirements [PROG-010]: these tasks do.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: &str) {
        if !self.wants_progress && !self.accepts_task() {
            return;
        }
        let message = (!message.is_empty()).then(|| String::from(message));
        self.report(Command::Progress { request: self.handle, progress, total, message });
    }

    /// Sends a log message to the client if the client wants messages of this level and reads fast
    /// enough: see [`Limits`](mcp_sansio::peer::Limits). Does nothing unless the server declares
    /// [`logging`](super::Server::logging).
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// log to standard error, or with OpenTelemetry, and report what the client needs in results.
    ///
    /// `source` is the level, or the level and the name of the logger:
    ///
    /// ```
    /// # use mcp_sansio_handlers::{Call, NoArguments};
    /// use mcp_sansio::LoggingLevel;
    ///
    /// # fn handler(call: Call<NoArguments>) {
    /// call.log(LoggingLevel::Info, "the tank is full");
    /// call.log((LoggingLevel::Error, "pump"), &["no pressure", "stopped"]);
    /// # }
    /// # let _ = handler;
    /// ```
    pub fn log<'l, D: Serialize + ?Sized>(&self, source: impl Into<LogSource<'l>>, data: &D) {
        if let Some(command) = source.into().message(Some(self.handle), data) {
            self.report(command);
        }
    }

    /// Closes the HTTP connection that carries the messages of this request; the client reconnects
    /// for the rest after `retry`. For long-running work. Does nothing on other transports and at
    /// revisions without this feature.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-006]
    pub fn release_connection(&self, retry: Duration) {
        // Fails only if the connection is closed: this command is not counted against the limit.
        let _sent = self.send(Command::ReleaseConnection { request: self.handle, retry });
    }

    /// Whether this call can become a task, or is one already. It can if the server has
    /// [tasks](super::Server::tasks) and the client declared support for them with this request. At
    /// 2025-11-25 a call is a task from its start if its client asked for that.
    // MCP 2026-07-28 ext-tasks:tasks#capability-negotiation [TASK-025]
    #[must_use]
    pub const fn accepts_task(&self) -> bool {
        self.is_task || (self.tasks && self.capabilities.contains(Capability::TasksExtension))
    }

    /// Lets this tool call continue as a task, if it [can](Self::accepts_task): when the handler
    /// next waits or requests input, the client gets the task instead of an answer and fetches the
    /// result later. The call is answered as usual if the client does not support tasks, if the
    /// handler finishes without waiting, or if the server has too many tasks.
    ///
    /// At 2025-11-25 this has no effect: there the client decides which call is a task.
    ///
    /// A task continues when its request or connection ends. Its input requests are sent through
    /// the task; earlier ones were sent through the call. A handler that is called again with
    /// answers calls this method again, which has no effect.
    // MCP 2026-07-28 ext-tasks:tasks#polymorphic-results [TASK-026]
    // MCP 2026-07-28 ext-tasks:tasks#task-creation [TASK-042]
    pub fn run_as_task(&self) {
        if self.accepts_task() && !self.is_task {
            // Fails only if the connection is closed: this command is not counted against the
            // limit.
            let _sent = self.send(Command::RunAsTask(self.handle));
        }
    }

    /// Like [`run_as_task`](Self::run_as_task), for a tool that requires a client with task
    /// support.
    ///
    /// # Errors
    ///
    /// The client did not declare task support. Return the error from the handler to tell the
    /// client. Clients of 2025-11-25 learn it earlier, from
    /// [`ToolExecution::task_support`](mcp_sansio::protocol::ToolExecution::task_support).
    // MCP 2026-07-28 ext-tasks:tasks#capability-negotiation [TASK-028]
    pub fn require_task(&self) -> Result<(), HandlerError> {
        if !self.accepts_task() {
            return Err(HandlerError::task_required());
        }
        self.run_as_task();
        Ok(())
    }

    /// Changes the catalog of this connection, over HTTP that of the server; clients are notified.
    /// To change all connections, use [`Connections`](super::Connections).
    ///
    /// The edit runs when the connection is driven next, and its errors are lost: an `async` handler
    /// that needs them lets the edit send them through a channel, and awaits that. A plain handler
    /// cannot wait for its edit.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue of this handler is full, or the connection is closed.
    pub fn edit_catalog(
        &self,
        edit: impl FnOnce(&mut CatalogEdit<'_>) + Send + 'static,
    ) -> Result<(), SendError> {
        self.send(Command::EditCatalog { from: Some(self.handle), edit: Box::new(edit) })
    }

    /// Notifies the subscribers of a resource that it changed.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue of this handler is full, or the connection is closed.
    pub fn resource_updated(&self, uri: impl Into<String>) -> Result<(), SendError> {
        self.send(Command::ResourceUpdated { from: Some(self.handle), uri: uri.into() })
    }

    /// Returns the answers and the state from earlier rounds of this request.
    #[must_use]
    pub const fn inputs(&self) -> &InputResponseParams<'static> {
        &self.inputs
    }

    /// Queues a message that may be dropped when the driver is far behind.
    pub(super) fn report(&self, command: Command) {
        let _sent = self.commands.send(command);
    }

    fn send(&self, command: Command) -> Result<(), SendError> {
        Ok(self.commands.send(command)?)
    }
}

/// A request to a handler: its arguments, and the [`Context`] that it dereferences to.
///
/// ```
/// use mcp_sansio_handlers::{Call, Host, Server};
///
/// #[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
/// struct Sum { a: i64, b: i64 }
///
/// let server = Server::new("calculator", "1.0.0")
///     .tool("add", "Adds two numbers", |call: Call<Sum>| {
///         format!("{} at {}", call.arguments.a + call.arguments.b, call.revision())
///     });
/// # let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("demo", "1.0.0"));
/// # let result = pair.run(client.call_tool("add", &Sum { a: 1, b: 2 }))?;
/// # assert_eq!(result.first_text(), Some("3 at 2026-07-28"));
/// # Ok::<(), mcp_sansio_handlers::ClientError>(())
/// ```
#[derive(Debug)]
pub struct Call<A> {
    /// The arguments, decoded.
    pub arguments: A,
    pub(super) context: Context,
}

impl<A> Deref for Call<A> {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

/// Arguments of a tool without parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, Serialize)]
pub struct NoArguments {}

/// The target of a `resources/read` request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadResource {
    /// The requested URI.
    pub uri: String,
    template: Option<TemplateMatch>,
}

impl ReadResource {
    /// Returns the variables of the matched template, in the template's order.
    #[must_use]
    pub fn variables(&self) -> &[(String, String)] {
        self.template.as_ref().map_or(&[], TemplateMatch::variables)
    }

    /// Returns the variable called `name`.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        let mut variables = self.variables().iter();
        variables.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A type that a handler can take as its parameter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the parameter of a handler here",
    note = "a tool's handler takes `Call<T>` with `T: DeserializeOwned`"
)]
pub trait FromRequest<Of>: Sized {
    /// Decodes the parameter.
    ///
    /// # Errors
    ///
    /// The arguments do not match the type: the client's error.
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError>;
}

impl<A: DeserializeOwned> FromRequest<CallToolResult> for Call<A> {
    // MCP 2025-06-18 server/tools#error-handling [TOOL-009]: arguments that do not fit are a
    // protocol error.
    // MCP 2025-11-25 server/tools#error-handling [TOOL-010]: they are a tool error.
    // Called once for a type: the arguments are decoded where the handler expects them.
    #[inline(always)]
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        let call = received.call()?;
        let arguments = call.request.arguments();
        match decode_arguments(arguments) {
            Ok(arguments) => {
                Ok(Self { arguments, context: Context::new(call, received.cancelled) })
            }
            Err(error) => Err(invalid_arguments(&error, received.revision)),
        }
    }
}

/// Decodes arguments. If the type does not take one that is `null`, the `null` ones are absent: models
/// write `null` for what they leave out, and serde's defaults are for absent members only.
// What is generic is short, and contains the reading of the type once.
#[inline(always)]
fn decode_arguments<A: DeserializeOwned>(arguments: Option<RawJson<'_>>) -> Result<A, JsonError> {
    let mut decoded = None;
    read_arguments(arguments.unwrap_or(RawJson::EMPTY_OBJECT), &mut |arguments| {
        decoded = Some(arguments.decode()?);
        Ok(())
    })?;
    Ok(decoded.expect("what was read without an error"))
}

/// Calls `read`, which decodes arguments: as they are, then without those that are `null`, then
/// without `null` members at every depth. That comes last: an untyped value loses members by it. The
/// error is that of the arguments as they are.
fn read_arguments(
    arguments: RawJson<'_>,
    read: &mut dyn FnMut(&RawJson<'_>) -> Result<(), JsonError>,
) -> Result<(), JsonError> {
    let Err(error) = read(&arguments) else { return Ok(()) };
    for depth in [1, usize::MAX] {
        let present = arguments.without_null_members(&[], depth);
        if present.is_some_and(|present| read(&present).is_ok()) {
            return Ok(());
        }
    }
    Err(error)
}

fn invalid_arguments(error: &JsonError, revision: Revision) -> HandlerError {
    let message = alloc::format!("invalid arguments: {error}");
    if revision >= Revision::V2025_11_25 {
        HandlerError::Answered(Box::new(CallToolResult::error(message)))
    } else {
        HandlerError::invalid_params(message)
    }
}

impl<A: DeserializeOwned> FromRequest<GetPromptResult> for Call<A> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        let call = received.call()?;
        let arguments = decode_arguments(call.request.arguments());
        // MCP 2025-11-25 server/prompts#error-handling [PRMT-006] [PRMT-007]
        let arguments = arguments.map_err(|error| invalid_params(&error))?;
        Ok(Self { arguments, context: Context::new(call, received.cancelled) })
    }
}

impl FromRequest<ReadResourceResult> for Call<ReadResource> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        let call = received.call()?;
        let uri = call.request.subject();
        let uri = uri.and_then(|uri| uri.to_text().map(Cow::into_owned)).unwrap_or_default();
        let template = match &call.request.target {
            Target::Template(found) => Some(found.clone()),
            _ => None,
        };
        Ok(Self {
            arguments: ReadResource { uri, template },
            context: Context::new(call, received.cancelled),
        })
    }
}

impl<A: DeserializeOwned> FromRequest<Json> for Call<A> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        let call = received.call()?;
        let arguments = received.params.decode().map_err(|error| invalid_params(&error))?;
        Ok(Self { arguments, context: Context::new(call, received.cancelled) })
    }
}

pub(super) fn invalid_params(error: &JsonError) -> HandlerError {
    HandlerError::invalid_params(error.to_string())
}

// ------------------------------------------------------------------ calls of other handlers

impl<A> Call<A> {
    /// Creates a call from arguments and a context, for a handler that calls another one. In a
    /// test, `mcp_sansio_test::call` has a context.
    #[must_use]
    pub const fn new(arguments: A, context: Context) -> Self {
        Self { arguments, context }
    }

    /// Returns the arguments, and the access to the request and its connection.
    #[must_use]
    pub fn into_parts(self) -> (A, Context) {
        (self.arguments, self.context)
    }
}
