use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use mcp_sansio::jsonrpc::{
    AsJson, ErrorCode, ErrorObject, Json, RawJson, WriteError, WriteJson, to_shared_json,
};
use mcp_sansio::peer::{CloseReason, Failure, MethodName};
use mcp_sansio::protocol::{
    AtRevision, CallToolResult, Capabilities, CompleteParams, CompleteResult, EmptyResult,
    GetPromptParams, GetPromptResult, ListParams, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingLevel, Method, Prompt, PromptArguments,
    ReadResourceParams, ReadResourceResult, Resource, ResourceNotFoundData, ResourceTemplate,
    SerializeAt, SubscriptionFilter, Task, Tool,
};
use mcp_sansio::{Era, Revision};
use serde::Serialize;

use super::context::SendError;
use super::mailbox::{Mailbox, SendFailure};
use super::opening::{Opening, WaiterKey};
use super::pending::{CallFuture, CallPool, ClientCall, Pending, Subscription};
use super::shares::{Coalesced, Cost, Metered};

/// A client's handle to its connection: makes calls, from any thread, as often as it is cloned.
///
/// The connection itself is driven by an adapter. It closes when the last handle is dropped, calls
/// under way and open subscriptions included: they have one each.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Arc<CloseOnDrop>,
}

/// What the handles of a connection share, and its driver does not.
#[derive(Debug)]
struct CloseOnDrop {
    shared: Arc<ConnectionState>,
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        // A connection that is over already is as good.
        let _closing = self.shared.mailbox.send(Command::Close);
    }
}

/// What all handles of a connection and its driver share.
#[derive(Debug)]
pub(super) struct ConnectionState {
    pub(super) mailbox: Arc<Mailbox<Command>>,
    pub(super) opening: Opening,
    pub(super) call_pool: CallPool,
}

/// What was agreed on when the connection opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Session {
    /// The negotiated revision.
    pub revision: Revision,
    /// What the server declared, as far as the gate knows it.
    pub capabilities: Capabilities,
    /// What the server declared, as it came: a `ServerCapabilities` object.
    pub capabilities_json: Json,
    /// What the server says that it is, an `Implementation`.
    pub server_info: Option<Json>,
    /// How to use the server, for the model.
    pub instructions: Option<String>,
}

/// What handles want of the driver.
#[derive(Debug)]
pub(super) enum Command {
    Call {
        pending: Arc<Pending>,
        method: MethodName<'static>,
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
    Notify {
        method: Method,
        params: RawJson<'static>,
    },
    SetLogLevel(LoggingLevel),
    #[cfg(feature = "auth")]
    Authorize,
    #[cfg(feature = "auth")]
    ForgetAuthorization,
    Close,
}

impl Metered for Command {
    fn cost(&self) -> Cost {
        match self {
            // One for each call that was made at most, of which the machine has a limit.
            Self::Cancel { .. } => Cost::Free,
            Self::Close => Cost::Coalesced(None, Coalesced::Close),
            // What they hold is the application's.
            _ => Cost::Command(None, 0),
        }
    }
}

/// Why a call of a [`Client`] has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// It was made, and ended without a result.
    #[error(transparent)]
    Failed(#[from] Failure<'static>),
    /// It was not made: the server does not offer it, the connection is not open, or the
    /// parameters cannot be written.
    #[error("{0}")]
    NotSent(String),
    /// It was not made: as many wait for the driver of the connection as may. See
    /// [`Limits::commands_max`](mcp_sansio::peer::Limits::commands_max); later there is room again.
    #[error("too many commands wait for the driver of the connection")]
    TooManyCommands,
    /// The connection is over.
    #[error(transparent)]
    Closed(#[from] CloseReason),
    /// The server's result does not have the shape that its method has.
    #[error("the server's result is not valid: {0}")]
    InvalidResult(#[from] serde_json::Error),
    /// The server pages in circles.
    #[error("the server gave the same cursor twice: {0:?}")]
    CursorLoop(String),
    /// The server's list does not end.
    #[error("the list has more than {limit} pages")]
    TooManyPages {
        /// How many were read.
        limit: usize,
    },
}

impl ClientError {
    /// The error that the server answered with.
    #[must_use]
    pub const fn as_refusal(&self) -> Option<&ErrorObject<'static>> {
        match self {
            Self::Failed(Failure::Refused(error)) => Some(error),
            _ => None,
        }
    }

    /// Whether the server has no such resource, as servers of any revision say it: with `-32002`, or
    /// with `-32602` and the URI.
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
        Self::NotSent(alloc::string::ToString::to_string(&error))
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
    /// It could not be opened, or is over already.
    pub fn opened(&self) -> OpenedFuture<'_> {
        OpenedFuture { opening: &self.handle.shared.opening, waiting: None }
    }

    /// What was agreed on, once the connection is open.
    #[must_use]
    pub fn session(&self) -> Option<Arc<Session>> {
        self.handle.shared.opening.session()
    }

    /// The era that the server turned out to be of, once the connection is open. Remembered with
    /// [`Host::known_era`](super::Host::known_era), it saves the next connection to the same server
    /// the probe, and a server that exits on a probe a start.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-018]
    #[must_use]
    pub fn era(&self) -> Option<Era> {
        self.session().map(|session| session.revision.era())
    }

    /// Why the connection is over, once it is.
    #[must_use]
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.handle.shared.opening.close_reason()
    }

    fn revision(&self) -> Revision {
        self.session().map_or(Revision::LATEST, |session| session.revision)
    }

    // ------------------------------------------------------------------ calls

    /// Calls a tool; `arguments` serialise to an object. A tool that fails gives a result whose
    /// `is_error` says so.
    #[must_use = "await it"]
    pub fn call_tool<A: Serialize + ?Sized>(
        &self,
        name: &str,
        arguments: &A,
    ) -> ClientCall<CallToolResult> {
        // As `CallToolParams` is written, but in one go, without a text for the arguments.
        self.start(Method::ToolsCall, &AsJson(&ToolCall { name, arguments }))
    }

    /// Reads a resource.
    #[must_use = "await it"]
    pub fn read_resource(&self, uri: &str) -> ClientCall<ReadResourceResult> {
        self.start_typed(Method::ResourcesRead, &ReadResourceParams::new(uri))
    }

    /// Fills in a prompt.
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
            if !arguments.is_empty() {
                params.arguments =
                    Some(to_shared_json(&AsJson(&AtRevision(&arguments, revision)))?);
            }
            AsJson(&AtRevision(&params, revision)).write_json(out)
        })
    }

    /// Completes an argument.
    #[must_use = "await it"]
    pub fn complete(&self, params: &CompleteParams) -> ClientCall<CompleteResult> {
        self.start_typed(Method::CompletionComplete, params)
    }

    /// Asks a legacy server whether it is alive.
    #[must_use = "await it"]
    pub fn ping(&self) -> ClientCall<EmptyResult> {
        self.start(Method::Ping, &RawJson::EMPTY_OBJECT)
    }

    /// One page of the tools.
    #[must_use = "await it"]
    pub fn list_tools(&self, cursor: Option<&str>) -> ClientCall<ListToolsResult> {
        self.list(Method::ToolsList, cursor)
    }

    /// One page of the resources.
    #[must_use = "await it"]
    pub fn list_resources(&self, cursor: Option<&str>) -> ClientCall<ListResourcesResult> {
        self.list(Method::ResourcesList, cursor)
    }

    /// One page of the resource templates.
    #[must_use = "await it"]
    pub fn list_resource_templates(
        &self,
        cursor: Option<&str>,
    ) -> ClientCall<ListResourceTemplatesResult> {
        self.list(Method::ResourcesTemplatesList, cursor)
    }

    /// One page of the prompts.
    #[must_use = "await it"]
    pub fn list_prompts(&self, cursor: Option<&str>) -> ClientCall<ListPromptsResult> {
        self.list(Method::PromptsList, cursor)
    }

    /// Any call, with parameters as JSON text without `_meta`, and a result as JSON text.
    #[must_use = "await it"]
    pub fn call(&self, method: Method, params: RawJson<'_>) -> ClientCall<Json> {
        self.start(method, &params)
    }

    /// Any call of a method outside the protocol.
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

    /// A call that is not made.
    pub(super) fn not_sent<T>(&self, method: Method, why: String) -> ClientCall<T> {
        ClientCall::not_sent(self.clone(), MethodName::Known(method), why)
    }

    /// Waits for some time, by the clock of the connection.
    pub(super) fn sleep(&self, pause: Duration) -> CallFuture<EmptyResult> {
        let pending = Arc::new(Pending::new());
        self.send(Command::Sleep { pending: Arc::clone(&pending), pause });
        CallFuture::new(self.clone(), pending)
    }

    /// Nobody is interested any more in what belongs to a call that ended.
    pub(super) fn let_go(&self, pending: Arc<Pending>) {
        self.send(Command::Cancel { pending, reason: "" });
    }

    pub(super) fn call_pool(&self) -> &CallPool {
        &self.handle.shared.call_pool
    }

    // ------------------------------------------------------------------ the rest

    /// Subscribes to changes. The subscription ends when it is dropped.
    #[must_use]
    pub fn subscribe(&self, filter: SubscriptionFilter) -> Subscription {
        Subscription::new(self.clone(), filter)
    }

    /// Asks for log messages from `level` on; they are shown to the host's observers.
    ///
    /// # Errors
    ///
    /// [`SendError`]: too many commands wait, or the connection is over.
    pub fn set_log_level(&self, level: LoggingLevel) -> Result<(), SendError> {
        self.command(Command::SetLogLevel(level))
    }

    /// Tells a legacy server that the roots changed; a modern one asks when it needs them.
    ///
    /// # Errors
    ///
    /// [`SendError`]: too many commands wait, or the connection is over.
    // MCP 2025-11-25 client/roots#root-list-changes [ROOT-003]
    // MCP 2026-07-28 client/roots#listing-roots [ROOT-005]
    pub fn roots_changed(&self) -> Result<(), SendError> {
        if self.revision().era() == Era::Modern {
            return Ok(());
        }
        let params = RawJson::EMPTY_OBJECT;
        self.command(Command::Notify { method: Method::RootsListChanged, params })
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.send(Command::Close);
    }

    /// Leaves a command that says itself whether it was taken.
    pub(super) fn command(&self, command: Command) -> Result<(), SendError> {
        Ok(self.handle.shared.mailbox.send(command)?)
    }

    /// Leaves a command. A connection that is over has nobody to tell; calls learn it, or that there
    /// are too many, from their own state.
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
        | Command::Sleep { pending, .. } = command
        {
            pending.end(Err(error));
        }
    }
}

/// The parameters of `tools/call`, with arguments that are not text yet.
#[derive(Serialize)]
struct ToolCall<'a, A: ?Sized> {
    name: &'a str,
    arguments: &'a A,
}

/// Pages of one list that are put together. 1,000: more is a server that makes them up, or a list
/// that wants to be read page by page.
const PAGES_MAX: usize = 1000;

macro_rules! all_pages {
    ($($(#[doc = $doc:literal])* $name:ident, $page:ident, $field:ident: $item:ty;)+) => {
        impl Client { $(
            $(#[doc = $doc])*
            ///
            /// # Errors
            ///
            /// That of the page that failed; [`ClientError::CursorLoop`] and
            /// [`ClientError::TooManyPages`] for a server whose list does not end.
            // MCP 2026-07-28 server/utilities/pagination#implementation-guidelines [PAGE-002]
            // [PAGE-004] [PAGE-005] [PAGE-006]: only the absence of a cursor is the end.
            // MCP 2025-11-25 server/utilities/pagination#implementation-guidelines [PAGE-003]
            // MCP 2026-07-28 server/prompts#implementation-considerations [PRMT-008]
            pub async fn $name(&self) -> Result<Vec<$item>, ClientError> {
                let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
                let mut page = self.$page(None).await?;
                loop {
                    all.append(&mut page.$field);
                    let Some(cursor) = page.next_cursor else { return Ok(all) };
                    if seen.contains(&cursor) {
                        return Err(ClientError::CursorLoop(cursor));
                    }
                    if seen.len() + 1 >= PAGES_MAX {
                        return Err(ClientError::TooManyPages { limit: PAGES_MAX });
                    }
                    page = self.$page(Some(&cursor)).await?;
                    seen.insert(cursor);
                }
            }
        )+ }
    };
}

all_pages! {
    /// All tools, page by page.
    all_tools, list_tools, tools: Tool;
    /// All resources, page by page.
    all_resources, list_resources, resources: Resource;
    /// All resource templates, page by page.
    all_resource_templates, list_resource_templates, resource_templates: ResourceTemplate;
    /// All prompts, page by page.
    all_prompts, list_prompts, prompts: Prompt;
    /// All tasks of this client, page by page; at 2025-11-25.
    all_tasks, list_tasks, tasks: Task;
}

/// Resolves when a connection is open or over.
#[derive(Debug)]
#[must_use = "await it"]
pub struct OpenedFuture<'c> {
    opening: &'c Opening,
    waiting: Option<WaiterKey>,
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
