//! Clients: hosts, their connections, calls, subscriptions, tasks, and several servers as one.

pub(super) mod config;
pub(super) mod endpoint;
pub(super) mod extension;
pub(super) mod host;
#[cfg(feature = "http")]
pub(super) mod http;
pub(super) mod middleware;
pub(super) mod pending;
pub(super) mod servers;
pub(super) mod tasks;

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use mcp_sansio::envelope::write_string;
use mcp_sansio::gate::GateError;
use mcp_sansio::jsonrpc::{
    AsJson, ErrorObject, Json, JsonError, Omission, RawJson, WriteError, WriteJson, to_shared_json,
};
use mcp_sansio::peer::{CloseReason, CommandError, Event, Failure, MethodName, Violation};
use mcp_sansio::protocol::{
    AtRevision, CallToolResult, CompleteParams, CompleteResult, EmptyResult, GetPromptParams,
    GetPromptResult, ListParams, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, Prompt, PromptArguments, ReadResourceParams,
    ReadResourceResult, Resource, ResourceNotFoundData, ResourceTemplate, SerializeAt,
    SubscriptionFilter, Task, Tool,
};
use mcp_sansio::{Capabilities, Capability, Era, ErrorCode, LoggingLevel, Method, Revision};
use mcp_sansio_collections::{Key, Slab};
use mcp_sansio_sync::Mutex;
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::executor::PanicGuard;
use super::mailbox::{Coalesced, Cost, Mailbox, Metered, SendError, SendFailure};
use super::server::Observers;

use host::CacheMode;
use middleware::ConnectionLayers;
use pending::{CallPool, Pending, TimeoutText};

pub use config::{ServerSpec, ServersConfig};
pub use host::{Host, HostRequest};
pub use pending::{CallFuture, ClientCall, Subscription};
pub use servers::{
    ConnectionError, MergedItem, MergedList, ServerConnection, ServerState, Servers, ServersError,
};
pub use tasks::{ClientTask, TaskCall, TaskFuture};

/// A handle to a client connection. It makes calls, from any thread, and can be cloned freely.
///
/// An adapter drives the connection itself. The connection closes when the last handle is dropped;
/// pending calls and open subscriptions hold a handle each.
///
/// ```
/// use mcp_sansio_handlers::{Call, Client, ClientError, Host, NoArguments, Server};
///
/// async fn application(client: Client) -> Result<(), ClientError> {
///     for tool in client.all_tools().await? {
///         println!("{}: {}", tool.name, tool.description.unwrap_or_default());
///     }
///     let result = client.call_tool("now", &NoArguments {}).await?;
///     assert_eq!(result.first_text(), Some("about noon"));
///     Ok(())
/// }
/// # let server = Server::new("clock", "1.0.0")
/// #     .tool("now", "The time", |_: Call<NoArguments>| "about noon");
/// # let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("demo", "1.0.0"));
/// # pair.run(application(client))?;
/// # Ok::<(), ClientError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<CloseOnDrop>,
}

/// State that the handles of a connection share without its driver.
#[derive(Debug)]
struct CloseOnDrop {
    shared: Arc<ConnectionState>,
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        // Fails only if the connection is already closed.
        let _closing = self.shared.mailbox.send(Command::Close);
    }
}

/// State that all handles of a connection share with its driver.
#[derive(Debug)]
pub(super) struct ConnectionState {
    pub(super) mailbox: Arc<Mailbox<Command>>,
    pub(super) opening: Opening,
    pub(super) call_pool: CallPool,
    pub(super) has_cache: bool,
    /// Whether the connection waits for a new process of its server.
    pub(super) is_suspended: AtomicBool,
    /// The first line of the server that was not a message.
    pub(super) stray_line: Mutex<Option<Box<str>>>,
    /// Whether calls that become tasks are followed.
    pub(super) follows_tasks: bool,
    pub(super) extensions: Option<Arc<Vec<super::extension::RegisteredExtension>>>,
    /// The observers of the host.
    pub(super) observers: Observers,
    /// What runs the observers.
    pub(super) guard: Mutex<PanicGuard>,
    /// The middleware of the host, if it has any.
    pub(super) layers: Option<Box<ConnectionLayers>>,
    /// The observer of the host, if it has one.
    pub(super) observer: Option<Arc<dyn mcp_sansio::peer::OperationObserver>>,
    pub(super) is_http: bool,
}

/// The properties that were negotiated when the connection opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Session {
    /// The negotiated revision.
    pub revision: Revision,
    /// The capabilities of the server that the outgoing gate checks.
    pub capabilities: Capabilities,
    /// The server's capabilities as received: a `ServerCapabilities` object.
    pub capabilities_json: Json,
    /// The server's `Implementation` object.
    pub server_info: Option<Json>,
    /// Instructions for the model on how to use the server.
    pub instructions: Option<String>,
}

/// A command from a handle to the driver.
#[derive(Debug)]
pub(super) enum Command {
    Call {
        pending: Arc<Pending>,
        /// Whether it cleans up after another call, and is accepted even if the queue is full.
        is_cleanup: bool,
    },
    Subscribe {
        pending: Arc<Pending>,
        filter: SubscriptionFilter,
    },
    Cancel {
        pending: Arc<Pending>,
        reason: &'static str,
    },
    Sleep {
        pending: Arc<Pending>,
        pause: Duration,
    },
    /// Passes an input request of a task to the host.
    AskHost {
        pending: Arc<Pending>,
        method: Method,
    },
    Notify {
        method: MethodName<'static>,
        params: RawJson<'static>,
    },
    SetLogLevel(LoggingLevel),
    #[cfg(feature = "http")]
    Authorize,
    #[cfg(feature = "http")]
    ForgetAuthorization,
    Close,
}

impl Metered for Command {
    fn cost(&self) -> Cost {
        match self {
            // At most one per call, and the machine limits the calls.
            Self::Cancel { .. } | Self::Call { is_cleanup: true, .. } => Cost::Free,
            Self::Close => Cost::Coalesced(None, Coalesced::Close),
            // The application supplied their data, so it is not metered.
            _ => Cost::Command(None, 0),
        }
    }
}

/// Why a call of a [`Client`] has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The call was sent and ended without a result.
    #[error(transparent)]
    Failed(#[from] Failure<'static>),
    /// The answer did not arrive in time; a cancellation was sent.
    #[error("{}", TimeoutText(.method, .target.as_deref(), *.after, *.hard))]
    TimedOut {
        /// The method of the call.
        method: MethodName<'static>,
        /// The name of the tool or prompt, the URI of the resource, or the id of the task that the
        /// call names.
        target: Option<Box<str>>,
        /// The time that has passed: since the call or its last progress, or in total if `hard`.
        after: Duration,
        /// Whether the hard deadline passed, which progress does not extend.
        hard: bool,
    },
    /// The call was not sent: the server does not offer the method
    /// ([`missing_capability`](Self::missing_capability) says why), the connection is not open, or
    /// the parameters cannot be serialized.
    #[error(transparent)]
    NotSent(Box<CommandError>),
    /// The call was not sent: it is not a method that this client may send to this server.
    #[error(transparent)]
    Extension(#[from] super::extension::ExtensionGateError),
    /// The call was not sent: the definition of the tool says that it never runs as a task.
    #[error("the tool {tool:?} never runs as a task")]
    NoTaskSupport {
        /// The name of the tool.
        tool: String,
    },
    /// The call was not sent: a [header field](ClientCall::header) is not allowed. The caller's
    /// fault.
    #[error(transparent)]
    InvalidHeader(#[from] mcp_sansio::peer::InvalidHeader),
    /// The call was not sent: the command queue of the driver is full. See
    /// [`Limits::commands_max`](mcp_sansio::peer::Limits::commands_max). Retry later.
    #[error("too many commands wait for the driver of the connection")]
    TooManyCommands,
    /// The call was not sent: a [`RateLimit`](crate::middleware::RateLimit) of the host was
    /// reached.
    #[error("the call was not sent: too many requests; try again in {retry_after:?}")]
    RateExceeded {
        /// When the next call will be accepted.
        retry_after: Duration,
    },
    /// Middleware of the host failed with an error of its own.
    #[error("middleware of the host failed: {0}")]
    Middleware(#[source] Box<dyn core::error::Error + Send + Sync>),
    /// The connection was closed before the call was sent.
    #[error(transparent)]
    Closed(#[from] CloseReason),
    /// A call by a name of [`Servers`] failed.
    #[error("{name:?} of the server {server:?}: {error}")]
    OfServer {
        /// The name of the server.
        server: Arc<str>,
        /// The name that was called.
        name: Box<str>,
        /// Why.
        #[source]
        error: Box<Self>,
    },
    /// The server runs the call as a task, whose result could not be read: the task is unknown to
    /// it, or it cannot be reached. The task may have ended in any way.
    #[error("the call runs as a task, whose result could not be read: {0}")]
    TaskLost(#[source] Box<Self>),
    /// The server's result does not match the schema of its method.
    #[error("the server's result is not valid: {0}")]
    InvalidResult(#[from] JsonError),
    /// The server's cursors form a loop. The methods of [`Client`] that list everything end there
    /// instead.
    #[error("the server gave the same cursor twice: {0:?}")]
    CursorLoop(String),
    /// The server's list has too many pages.
    #[error("the list has more than {limit} pages")]
    TooManyPages {
        /// The number of pages that were read.
        limit: usize,
    },
}

impl ClientError {
    /// Returns the error object that the server answered with.
    #[must_use]
    pub const fn as_refusal(&self) -> Option<&ErrorObject<'static>> {
        match self {
            Self::Failed(Failure::Refused(error)) => Some(error),
            Self::TaskLost(error) | Self::OfServer { error, .. } => error.as_refusal(),
            _ => None,
        }
    }

    /// Returns the capability that the server would have to declare for this call, if the call was
    /// not sent because the server did not declare it.
    #[must_use]
    pub fn missing_capability(&self) -> Option<Capability> {
        match self {
            Self::OfServer { error, .. } => error.missing_capability(),
            Self::NotSent(error) => match **error {
                CommandError::Forbidden(GateError::NotDeclared { capability: it, .. }) => Some(it),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether the call was executed: `Some(true)` if the server says so, `Some(false)` if
    /// it certainly was not executed, so that it can be made again without doing anything twice,
    /// and `None` if that is unknown.
    ///
    /// | Error | Result |
    /// | --- | --- |
    /// | [`Failed`](Self::Failed) | [`Failure::executed`]: `Some(false)` for `-32601` and `-32602`, `None` for `-32603` |
    /// | [`InvalidResult`](Self::InvalidResult), [`CursorLoop`](Self::CursorLoop), [`TooManyPages`](Self::TooManyPages) | `Some(true)` |
    /// | [`TimedOut`](Self::TimedOut), [`TaskLost`](Self::TaskLost), [`Middleware`](Self::Middleware) | `None` |
    /// | [`OfServer`](Self::OfServer) | that of its error |
    /// | any other: the call was not sent | `Some(false)` |
    #[must_use]
    pub const fn executed(&self) -> Option<bool> {
        match self {
            Self::Failed(failure) => failure.executed(),
            Self::OfServer { error, .. } => error.executed(),
            Self::TimedOut { .. } | Self::TaskLost(_) | Self::Middleware(_) => None,
            Self::InvalidResult(_) | Self::CursorLoop(_) | Self::TooManyPages { .. } => Some(true),
            Self::NotSent(_)
            | Self::Extension(_)
            | Self::NoTaskSupport { .. }
            | Self::InvalidHeader(_)
            | Self::TooManyCommands
            | Self::RateExceeded { .. }
            | Self::Closed(_) => Some(false),
        }
    }

    /// Returns how long to wait before the call is made again, if the server has said so.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Failed(failure) => failure.retry_after(),
            Self::TaskLost(error) | Self::OfServer { error, .. } => error.retry_after(),
            _ => None,
        }
    }

    /// Whether the server has no such resource. Recognizes the errors of all revisions: `-32002`,
    /// or `-32602` with the URI.
    // MCP 2026-07-28 server/resources#error-handling [RSRC-011]
    #[must_use]
    pub fn is_resource_not_found(&self) -> bool {
        self.as_refusal().is_some_and(|error| match error.code {
            ErrorCode::RESOURCE_NOT_FOUND => true,
            ErrorCode::INVALID_PARAMS => {
                let data = error.data.as_ref();
                data.is_some_and(|data| data.decode::<ResourceNotFoundData>().is_ok())
            }
            _ => false,
        })
    }
}

impl From<WriteError> for ClientError {
    fn from(error: WriteError) -> Self {
        Self::NotSent(Box::new(error.into()))
    }
}

impl Client {
    pub(super) fn new(shared: Arc<ConnectionState>) -> Self {
        Self { handle: Arc::new(CloseOnDrop { shared }) }
    }

    /// Waits until the connection is open.
    ///
    /// # Errors
    ///
    /// The connection could not be opened, or is already closed.
    pub fn opened(&self) -> impl Future<Output = Result<Arc<Session>, CloseReason>> {
        OpenedFuture { opening: &self.handle.shared.opening, waiting: None }
    }

    /// Waits until the connection is closed, and returns why. The future does not keep the
    /// connection open.
    pub fn closed(&self) -> impl Future<Output = CloseReason> + use<> {
        self.until_closed()
    }

    fn until_closed(&self) -> ClosedFuture {
        ClosedFuture { shared: Arc::clone(&self.handle.shared), waiting: None }
    }

    /// Returns the negotiated properties, once the connection is open.
    #[must_use]
    pub fn session(&self) -> Option<Arc<Session>> {
        self.handle.shared.opening.session()
    }

    /// Returns the era of the server, once the connection is open. Pass it to
    /// [`Host::known_era`](super::Host::known_era) for the next connection to the same server: that
    /// saves the probe, and a restart of servers that exit on a probe.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-018]
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.session().map(|session| session.revision.era())
    }

    /// Returns why the connection closed, once it is closed.
    #[must_use]
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.handle.shared.opening.close_reason()
    }

    /// Whether the process of the server has ended, and the connection waits for the next one, with
    /// all calls that are made meanwhile: see
    /// [`respawning`](crate::endpoint::ClientEndpoint::respawning).
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.handle.shared.is_suspended.load(Ordering::Relaxed)
    }

    /// Returns the start of the first line of the server that was not a message: usually text that
    /// it printed to its standard output. All of them are reported to the observers of the host.
    #[must_use]
    pub fn stray_line(&self) -> Option<Box<str>> {
        self.handle.shared.stray_line.lock(|line| line.clone())
    }

    /// Whether the connection is one over HTTP, on which a call can have
    /// [header fields](ClientCall::header).
    #[must_use]
    pub fn is_http(&self) -> bool {
        self.handle.shared.is_http
    }

    fn revision(&self) -> Revision {
        self.session().map_or(Revision::LATEST, |session| session.revision)
    }

    // ------------------------------------------------------------------ calls

    /// Calls a tool; `arguments` must serialize to an object. A failed tool returns a result with
    /// `is_error` set.
    #[must_use = "await it"]
    pub fn call_tool<A: Serialize + ?Sized>(
        &self,
        name: &str,
        arguments: &A,
    ) -> ClientCall<CallToolResult> {
        self.start(Method::ToolsCall, &ToolCall { name, arguments })
    }

    /// Reads a resource.
    #[must_use = "await it"]
    pub fn read_resource(&self, uri: &str) -> ClientCall<ReadResourceResult> {
        self.start_typed(Method::ResourcesRead, &ReadResourceParams::new(uri))
    }

    /// Requests a prompt with its arguments filled in: strings, such as `[]`, or
    /// `Map::from([("language", "Rust")])`, a [`Map`](mcp_sansio::protocol::Map).
    #[must_use = "await it"]
    pub fn get_prompt(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = (String, String)>,
    ) -> ClientCall<GetPromptResult> {
        let arguments: PromptArguments = arguments.into_iter().collect();
        let revision = self.revision();
        self.start(Method::PromptsGet, &|out: &mut String| {
            let mut params = GetPromptParams::new(name);
            // Also if the object is empty: many servers validate the member as an object that must
            // be present.
            params.arguments = Some(to_shared_json(&AsJson(&AtRevision(&arguments, revision)))?);
            AsJson(&AtRevision(&params, revision)).write_json(out)
        })
    }

    /// Completes an argument.
    #[must_use = "await it"]
    pub fn complete(&self, params: &CompleteParams) -> ClientCall<CompleteResult> {
        self.start_typed(Method::CompletionComplete, params)
    }

    /// Pings a legacy server.
    #[must_use = "await it"]
    pub fn ping(&self) -> ClientCall<EmptyResult> {
        self.start(Method::Ping, &RawJson::EMPTY_OBJECT)
    }

    /// Lists one page of the tools.
    #[must_use = "await it"]
    pub fn list_tools(&self, cursor: Option<&str>) -> ClientCall<ListToolsResult> {
        self.list(Method::ToolsList, cursor)
    }

    /// Lists one page of the resources.
    #[must_use = "await it"]
    pub fn list_resources(&self, cursor: Option<&str>) -> ClientCall<ListResourcesResult> {
        self.list(Method::ResourcesList, cursor)
    }

    /// Lists one page of the resource templates.
    #[must_use = "await it"]
    pub fn list_resource_templates(
        &self,
        cursor: Option<&str>,
    ) -> ClientCall<ListResourceTemplatesResult> {
        self.list(Method::ResourcesTemplatesList, cursor)
    }

    /// Lists one page of the prompts.
    #[must_use = "await it"]
    pub fn list_prompts(&self, cursor: Option<&str>) -> ClientCall<ListPromptsResult> {
        self.list(Method::PromptsList, cursor)
    }

    /// Sends any call, with its parameters as JSON text without `_meta`, and returns the result as
    /// JSON text.
    #[must_use = "await it"]
    pub fn call(&self, method: Method, params: RawJson<'_>) -> ClientCall<Json> {
        self.start(method, &params)
    }

    /// Sends a call whose method is not part of the protocol.
    #[must_use = "await it"]
    pub fn call_other(&self, method: impl Into<String>, params: RawJson<'_>) -> ClientCall<Json> {
        let method = MethodName::Other(method.into().into());
        ClientCall::new(self.clone(), method, &params)
    }

    pub(super) fn list<T>(&self, method: Method, cursor: Option<&str>) -> ClientCall<T> {
        let mut params = ListParams::new();
        params.cursor = cursor.map(String::from);
        self.start_typed(method, &params)
    }

    pub(super) fn start_typed<T>(
        &self,
        method: Method,
        params: &impl SerializeAt,
    ) -> ClientCall<T> {
        self.start(method, &AsJson(&AtRevision(params, self.revision())))
    }

    fn start<T>(&self, method: Method, params: &dyn WriteJson) -> ClientCall<T> {
        ClientCall::new(self.clone(), MethodName::Known(method), params)
    }

    /// Returns a call that fails without being sent.
    pub(super) fn not_sent<T>(&self, method: Method, why: ClientError) -> ClientCall<T> {
        ClientCall::not_sent(self.clone(), MethodName::Known(method), why)
    }

    /// Waits for a time, by the clock of the connection.
    pub(super) fn sleep(&self, pause: Duration) -> CallFuture<EmptyResult> {
        let pending = Arc::new(Pending::new());
        self.send(Command::Sleep { pending: Arc::clone(&pending), pause });
        CallFuture::new(self.clone(), pending)
    }

    /// Frees the state of a call that has ended and is no longer needed.
    pub(super) fn let_go(&self, pending: Arc<Pending>) {
        self.send(Command::Cancel { pending, reason: "" });
    }

    pub(super) fn shared(&self) -> &ConnectionState {
        &self.handle.shared
    }

    pub(super) fn layers(&self) -> Option<&ConnectionLayers> {
        self.handle.shared.layers.as_deref()
    }

    pub(super) fn call_pool(&self) -> &CallPool {
        &self.handle.shared.call_pool
    }

    // ------------------------------------------------------------------ the rest

    /// Requests log messages of `level` and above; they are shown to the host's observers.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// servers log to standard error, or with OpenTelemetry.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue is full, or the connection is closed.
    pub fn set_log_level(&self, level: LoggingLevel) -> Result<(), SendError> {
        self.command(Command::SetLogLevel(level))
    }

    /// Notifies a legacy server that the roots changed; a modern one requests them when it needs
    /// them.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// take directories and files as arguments, as URIs of resources or from the configuration.
    ///
    /// # Errors
    ///
    /// [`SendError`]: the command queue is full, or the connection is closed.
    // MCP 2025-11-25 client/roots#root-list-changes [ROOT-003]
    // MCP 2026-07-28 client/roots#listing-roots [ROOT-005]
    pub fn roots_changed(&self) -> Result<(), SendError> {
        if self.revision().era() == Era::Modern {
            return Ok(());
        }
        let method = MethodName::Known(Method::RootsListChanged);
        self.command(Command::Notify { method, params: RawJson::EMPTY_OBJECT })
    }

    /// Closes the connection.
    pub fn close(&self) {
        self.send(Command::Close);
    }

    /// Queues a command and returns whether it was accepted.
    pub(super) fn command(&self, command: Command) -> Result<(), SendError> {
        Ok(self.handle.shared.mailbox.send(command)?)
    }

    /// Queues a command. Errors are not returned: a call learns from its own state that the
    /// connection is closed or the queue is full.
    pub(super) fn send(&self, command: Command) {
        let Err(refused) = self.handle.shared.mailbox.send(command) else { return };
        let (command, error) = match refused {
            SendFailure::Full(command) => (command, ClientError::TooManyCommands),
            SendFailure::Closed(command) => {
                let reason = self.close_reason().unwrap_or(CloseReason::Local);
                (command, ClientError::Closed(reason))
            }
        };
        if let Command::Call { pending, .. }
        | Command::Subscribe { pending, .. }
        | Command::Sleep { pending, .. }
        | Command::AskHost { pending, .. } = command
        {
            pending.end(Err(error));
        }
    }
}

/// The parameters of `tools/call`, with arguments that are not serialized yet.
struct ToolCall<'a, A: ?Sized> {
    name: &'a str,
    arguments: &'a A,
}

impl<A: Serialize + ?Sized> WriteJson for ToolCall<'_, A> {
    fn write_json(&self, out: &mut String) -> Result<(), WriteError> {
        out.push_str("{\"name\":");
        write_string(out, self.name);
        out.push_str(",\"arguments\":");
        let start = out.len();
        AsJson(self.arguments).write_json(out)?;
        // MCP 2025-11-25 schema.json#CallToolRequestParams [RPC-011]: an object.
        match out.get(start..) {
            Some(text) if text.starts_with('{') => {}
            // As `()` and `None` are written.
            Some("null") => out.replace_range(start.., "{}"),
            _ => return Err(WriteError::NotAnObject),
        }
        out.push('}');
        Ok(())
    }
}

/// The most pages of one list that are concatenated. 1,000: a longer list is made up by the server,
/// or should be read page by page.
const PAGES_MAX: usize = 1000;

macro_rules! all_pages {
    ($($(#[doc = $doc:literal])* $name:ident, $pages:ident, $page:ident, $field:ident: $item:ty;)+) => {
        impl Client { $(
            $(#[doc = $doc])*
            ///
            /// The list of a server that repeats a cursor, or that has more than 1,000 pages, ends
            /// there. That is reported to the observers of the host, as a
            /// [`Violation::ElementsOmitted`].
            ///
            /// # Errors
            ///
            /// The error of the page that failed.
            // MCP 2026-07-28 server/utilities/pagination#implementation-guidelines [PAGE-002]
            // [PAGE-004] [PAGE-005] [PAGE-006]: only the absence of a cursor is the end.
            // MCP 2025-11-25 server/utilities/pagination#implementation-guidelines [PAGE-003]
            // MCP 2026-07-28 server/prompts#implementation-considerations [PRMT-008]
            pub async fn $name(&self) -> Result<Vec<$item>, ClientError> {
                // MCP 2026-07-28 server/utilities/caching#interaction-with-pagination [CACHE-010]:
                // pages of different times may have gaps and duplicates, so either all are cached or
                // all are read again, from the first.
                if self.handle.shared.has_cache
                    && let Ok(all) = self.$pages(CacheMode::OnlyIfCached).await
                {
                    // With middleware, the same pages again, through it.
                    let passes = self.layers().is_some();
                    return if passes { self.$pages(CacheMode::Default).await } else { Ok(all) };
                }
                self.$pages(CacheMode::Reload).await
            }

            async fn $pages(&self, mode: CacheMode) -> Result<Vec<$item>, ClientError> {
                let (mut pages, mut seen) = (Vec::new(), BTreeSet::new());
                let mut page = self.$page(None).cache_mode(mode).await?;
                loop {
                    pages.push(page.$field);
                    let Some(cursor) = page.next_cursor else { break };
                    if let Err(error) = is_new(&cursor, &seen) {
                        self.report_endless(&error);
                        without_repeated(&mut pages);
                        break;
                    }
                    page = self.$page(Some(&cursor)).cache_mode(mode).await?;
                    seen.insert(cursor);
                }
                Ok(pages.into_iter().flatten().collect())
            }
        )+ }
    };
}

/// Checks that a list advances at a cursor, after those in `seen`.
fn is_new(cursor: &str, seen: &BTreeSet<String>) -> Result<(), ClientError> {
    if seen.contains(cursor) {
        return Err(ClientError::CursorLoop(cursor.into()));
    }
    if seen.len() + 1 >= PAGES_MAX {
        return Err(ClientError::TooManyPages { limit: PAGES_MAX });
    }
    Ok(())
}

/// Removes the pages of an endless list that a server has sent again: it ignores cursors, or starts
/// from the first page at one that it does not know.
fn without_repeated<T: PartialEq>(pages: &mut Vec<Vec<T>>) {
    pages.dedup();
    if let Some((last, before)) = pages.split_last()
        && before.contains(last)
    {
        pages.pop();
    }
}

all_pages! {
    /// Lists all tools, page by page.
    all_tools, pages_of_tools, list_tools, tools: Tool;
    /// Lists all resources, page by page.
    all_resources, pages_of_resources, list_resources, resources: Resource;
    /// Lists all resource templates, page by page.
    all_resource_templates, pages_of_resource_templates, list_resource_templates, resource_templates: ResourceTemplate;
    /// Lists all prompts, page by page.
    all_prompts, pages_of_prompts, list_prompts, prompts: Prompt;
    /// Lists all tasks of this client, page by page; at 2025-11-25.
    all_tasks, pages_of_tasks, list_tasks, tasks: Task;
}

// ------------------------------------------------------------------ results

impl Client {
    /// Decodes a result.
    #[inline]
    pub(super) fn decode<T: DeserializeOwned>(
        &self,
        result: &RawJson<'_>,
    ) -> Result<T, ClientError> {
        match result.decode() {
            Ok(value) => Ok(value),
            Err(_) => self.decode_lossy(result),
        }
    }

    /// Decodes a result that is not valid as a whole without the malformed elements of its lists and
    /// its malformed hints, and reports these to the observers of the host.
    #[cold]
    fn decode_lossy<T: DeserializeOwned>(&self, result: &RawJson<'_>) -> Result<T, ClientError> {
        let (value, omissions) = result.decode_lossy()?;
        if !omissions.is_empty() {
            self.report(Violation::ElementsOmitted(omissions));
        }
        Ok(value)
    }

    /// Reports that the end of a list was not reached.
    fn report_endless(&self, error: &ClientError) {
        let omission = Omission::new("/nextCursor", &error.to_string());
        self.report(Violation::ElementsOmitted(omission.into()));
    }

    /// Shows a violation of the server that was found in the context of the caller, who may have
    /// the last handle of a connection that is closed.
    fn report(&self, violation: Violation) {
        let shared = self.shared();
        let guard = shared.guard.lock(|guard| *guard);
        // An observer cannot affect the client, not even by a panic.
        let _shown = shared.observers.show(&Event::Violation(violation), guard);
    }
}

// ------------------------------------------------------------------ opening and closing

/// The state of a client's connection, with the tasks that wait for a change.
#[derive(Debug)]
pub(super) struct Opening {
    inner: Mutex<OpeningInner>,
}

#[derive(Debug)]
struct OpeningInner {
    state: OpeningState,
    waiting: Slab<Waker>,
}

#[derive(Clone, Debug)]
enum OpeningState {
    Opening,
    Open(Arc<Session>),
    Closed(Option<Arc<Session>>, CloseReason),
}

impl Opening {
    fn new() -> Self {
        Self {
            inner: Mutex::new(OpeningInner { state: OpeningState::Opening, waiting: Slab::new() }),
        }
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.inner.lock(|inner| match &inner.state {
            OpeningState::Open(session) | OpeningState::Closed(Some(session), _) => {
                Some(Arc::clone(session))
            }
            OpeningState::Opening | OpeningState::Closed(None, _) => None,
        })
    }

    fn close_reason(&self) -> Option<CloseReason> {
        self.inner.lock(|inner| match &inner.state {
            OpeningState::Closed(_, reason) => Some(reason.clone()),
            OpeningState::Opening | OpeningState::Open(_) => None,
        })
    }

    fn opened(&self, session: Arc<Session>) {
        self.change(OpeningState::Open(session));
    }

    fn closed(&self, reason: CloseReason) {
        self.change(OpeningState::Closed(self.session(), reason));
    }

    fn change(&self, state: OpeningState) {
        let before = self.inner.lock(|inner| mem::replace(&mut inner.state, state));
        drop(before);
        self.wake();
    }

    /// Wakes the waiting tasks, outside of the lock.
    fn wake(&self) {
        let waiting: Vec<Waker> = self.inner.lock(|inner| inner.waiting.take_all());
        for waker in waiting {
            waker.wake();
        }
    }

    fn poll(
        &self,
        waiting: &mut Option<Key>,
        cx: &Context<'_>,
    ) -> Poll<Result<Arc<Session>, CloseReason>> {
        self.wait(waiting, cx, |state| match state {
            OpeningState::Open(session) => Some(Ok(Arc::clone(session))),
            OpeningState::Closed(_, reason) => Some(Err(reason.clone())),
            OpeningState::Opening => None,
        })
    }

    fn poll_closed(&self, waiting: &mut Option<Key>, cx: &Context<'_>) -> Poll<CloseReason> {
        self.wait(waiting, cx, |state| match state {
            OpeningState::Closed(_, reason) => Some(reason.clone()),
            OpeningState::Opening | OpeningState::Open(_) => None,
        })
    }

    /// Looks for a state, and stores the waker if it is not reached yet.
    fn wait<T>(
        &self,
        waiting: &mut Option<Key>,
        cx: &Context<'_>,
        find: impl FnOnce(&OpeningState) -> Option<T>,
    ) -> Poll<T> {
        // Wakers are cloned and dropped outside of the lock, because they run foreign code.
        let mut waker = Some(cx.waker().clone());
        let mut old = None;
        let polled = self.inner.lock(|inner| match find(&inner.state) {
            Some(found) => Poll::Ready(found),
            None => {
                old = waiting.take().and_then(|waiting| inner.waiting.remove(waiting));
                *waiting = waker.take().map(|waker| inner.waiting.insert(waker));
                Poll::Pending
            }
        });
        drop((waker, old));
        polled
    }

    fn forget(&self, waiting: Key) {
        let waker = self.inner.lock(|inner| inner.waiting.remove(waiting));
        drop(waker);
    }
}

/// Resolves when a connection is open or closed.
#[must_use = "await it"]
struct OpenedFuture<'c> {
    opening: &'c Opening,
    waiting: Option<Key>,
}

impl Future for OpenedFuture<'_> {
    type Output = Result<Arc<Session>, CloseReason>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let opening = self.opening;
        opening.poll(&mut self.waiting, cx)
    }
}

impl Drop for OpenedFuture<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting {
            self.opening.forget(waiting);
        }
    }
}

/// Resolves when a connection is closed.
#[must_use = "await it"]
struct ClosedFuture {
    shared: Arc<ConnectionState>,
    waiting: Option<Key>,
}

impl ClosedFuture {
    /// See [`Client::is_suspended`].
    fn is_suspended(&self) -> bool {
        self.shared.is_suspended.load(Ordering::Relaxed)
    }
}

impl Future for ClosedFuture {
    type Output = CloseReason;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CloseReason> {
        let Self { shared, waiting } = self.get_mut();
        shared.opening.poll_closed(waiting, cx)
    }
}

impl Drop for ClosedFuture {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting {
            self.shared.opening.forget(waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp_sansio::peer::HeaderFields;

    use super::*;

    #[test]
    fn a_call_may_be_repeated_exactly_if_it_was_not_executed() {
        let refused =
            |code| ClientError::Failed(Failure::Refused(ErrorObject::new(ErrorCode(code), "no")));
        let header = HeaderFields::new().field("a\nb", "").expect_err("not a name");
        let json = RawJson::trusted("1").decode::<bool>().expect_err("not a bool");
        let closed = || ClientError::Closed(CloseReason::Local);
        let not_sent = CommandError::NotDue;
        let (method, target) = (MethodName::Known(Method::Ping), None);
        let timed_out =
            ClientError::TimedOut { method, target, after: Duration::ZERO, hard: false };
        for (error, expected) in [
            (refused(-32601), Some(false)),
            (refused(-32602), Some(false)),
            (refused(-32603), None),
            (refused(-1), Some(true)),
            (timed_out, None),
            (ClientError::Failed(Failure::ConnectionLost), None),
            (ClientError::NotSent(Box::new(not_sent)), Some(false)),
            (ClientError::NoTaskSupport { tool: String::new() }, Some(false)),
            (ClientError::InvalidHeader(header), Some(false)),
            (ClientError::TooManyCommands, Some(false)),
            (ClientError::RateExceeded { retry_after: Duration::ZERO }, Some(false)),
            (ClientError::Middleware("no".into()), None),
            (closed(), Some(false)),
            (ClientError::TaskLost(Box::new(closed())), None),
            (ClientError::TaskLost(Box::new(refused(-32602))), None),
            (ClientError::InvalidResult(json), Some(true)),
            (ClientError::CursorLoop(String::new()), Some(true)),
            (ClientError::TooManyPages { limit: 1 }, Some(true)),
        ] {
            assert_eq!(error.executed(), expected, "{error}");
        }
    }
}
