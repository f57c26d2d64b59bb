//! The configuration of tasks, and the servers that have them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::Write as _;
use core::time::Duration;

use mcp_sansio::catalog::{CatalogError, ItemKind};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::{
    CapabilitySettings, TASKS_EXTENSION, Task, TaskSupport, TasksCapability, ToolExecution,
};
use mcp_sansio::{Instant, Principal};

use super::entry::{Entry, iso_8601};
use super::table::TaskTable;
use super::tasks::Tasks;
#[cfg(feature = "http")]
use crate::http_server::HttpServerMachine;
use crate::server::Server;
use crate::server_binding::ServerBinding;
use crate::server_endpoint::StreamServer;
use crate::threading::Threading;

/// A function that observes every task.
type Observer = Arc<dyn Fn(TaskEvent, &Task, Option<&Principal>) + Send + Sync>;

/// An event of a task, for [observers](TaskSettings::observe).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskEvent {
    /// The task was created.
    Created,
    /// The status of the task changed.
    Changed,
    /// A client of 2025-11-25 fetched the result.
    Retrieved,
    /// The task expired and was removed, finished or not.
    Dropped,
}

/// The settings of a server's tasks, with the source of their ids and their limits: see
/// [`Server::tasks`](crate::Server::tasks).
///
/// ```
/// use core::time::Duration;
/// use mcp_sansio_handlers::{Server, TaskSettings};
///
/// # let random = || [7; 16];
/// # let unix_time = Duration::from_secs(1_785_000_000);
/// // 16 random bytes for each id, and the Unix time at `Instant::ZERO`.
/// let settings = TaskSettings::new(random, unix_time).ttl(Duration::from_secs(3600)).tasks_max(100);
/// let server = Server::new("reports", "1.0.0").tasks(settings);
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct TaskSettings {
    entropy: Arc<dyn Fn() -> [u8; 16] + Send + Sync>,
    epoch: Duration,
    pub(super) ttl: Duration,
    pub(super) poll_interval: Duration,
    pub(super) tasks_max: usize,
    pub(super) tasks_per_requestor_max: usize,
    observer: Option<Observer>,
    pub(super) bytes_max: usize,
}

impl TaskSettings {
    /// Creates settings with the defaults.
    ///
    /// `entropy` returns the id of a new task with each call: 128 bits from a secure source. A
    /// client that knows the id of a task without a [`Principal`] can access the task, so the seed
    /// of a machine is not sufficient.
    ///
    /// `epoch` is the time since 1970 at [`Instant::ZERO`], for the timestamps that clients
    /// receive.
    // MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
    pub fn new(entropy: impl Fn() -> [u8; 16] + Send + Sync + 'static, epoch: Duration) -> Self {
        Self {
            entropy: Arc::new(entropy),
            epoch,
            ttl: Duration::from_secs(3600),
            poll_interval: Duration::from_secs(1),
            tasks_max: 1024,
            tasks_per_requestor_max: 256,
            observer: None,
            bytes_max: 64 * 1024 * 1024,
        }
    }

    /// Sets how long a task is kept from its creation on; an unfinished task is cancelled then. One
    /// hour by default: enough to reconnect after a crash. Never unlimited: a client need not say
    /// that it no longer needs a result. A client of 2025-11-25 may request less.
    // MCP 2025-11-25 basic/utilities/tasks#ttl-and-resource-management [TASK-011] [TASK-023]
    #[must_use]
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets how often clients should poll. Every second by default: short for people, negligible
    /// load for servers.
    #[must_use]
    pub const fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }

    /// Sets the most tasks that are kept, running or finished. 1,024 by default: each may have a
    /// running handler. A call beyond the limit stays a call, whose client waits for its answer; a
    /// call that a client of 2025-11-25 wants to be a task is refused.
    #[must_use]
    pub const fn tasks_max(mut self, tasks: usize) -> Self {
        self.tasks_max = tasks;
        self
    }

    /// Sets how many tasks of [`tasks_max`](Self::tasks_max) one principal, or one session of an
    /// unknown client, may have. 256 by default: a quarter, so that one client cannot use up all.
    /// Unknown clients of 2026-07-28 have no limit except that for all tasks.
    // MCP 2025-11-25 basic/utilities/tasks#resource-management [TASK-023]
    #[must_use]
    pub const fn tasks_per_requestor_max(mut self, tasks: usize) -> Self {
        self.tasks_per_requestor_max = tasks;
        self
    }

    /// Adds an observer of all task events and the tasks' owners, for logs. It must return quickly.
    // MCP 2025-11-25 basic/utilities/tasks#audit-and-logging [TASK-048]
    #[must_use]
    pub fn observe(
        mut self,
        observer: impl Fn(TaskEvent, &Task, Option<&Principal>) + Send + Sync + 'static,
    ) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    pub(super) fn tell(&self, news: TaskEvent, entry: &Entry) {
        self.tell_of(news, &entry.task, entry.requestor.principal.as_ref());
    }

    /// Reports an event of a task that may belong to another node.
    pub(super) fn tell_of(&self, news: TaskEvent, task: &Task, principal: Option<&Principal>) {
        if let Some(observer) = &self.observer {
            observer(news, task, principal);
        }
    }

    /// Sets the most bytes of requests, input requests, answers and results that all tasks may hold
    /// together. 64 MiB by default. A call beyond the limit stays a call, or is refused, as for
    /// [`tasks_max`](Self::tasks_max); a result beyond the limit is dropped, and its task fails.
    #[must_use]
    pub const fn bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// Returns a new task id.
    pub(super) fn draw(&self) -> String {
        let mut name = String::with_capacity(32);
        for byte in (self.entropy)() {
            let written = write!(name, "{byte:02x}");
            debug_assert!(written.is_ok(), "writing to a string cannot fail");
        }
        name
    }

    /// Returns the time of day as text.
    pub(super) fn time(&self, now: Instant) -> String {
        iso_8601(self.epoch.saturating_add(now.saturating_since(Instant::ZERO)))
    }
}

mcp_sansio::partial_debug! {
    impl Debug for TaskSettings {
        ttl, poll_interval, tasks_max, tasks_per_requestor_max, bytes_max, ..
    }
}

// ------------------------------------------------------------------ servers with tasks

impl<K: Threading> Server<K> {
    /// Lets tool calls continue as tasks. The extension `io.modelcontextprotocol/tasks` is
    /// declared; clients of 2026-07-28 that support it get a task if the handler decides so.
    /// Clients of 2025-11-25 request a task, for tools that [allow it](Self::task_support):
    ///
    /// ```
    /// # use mcp_sansio_handlers::{Call, NoArguments, Server, TaskSettings};
    /// # use mcp_sansio::protocol::{TaskSupport, Tool};
    /// # use mcp_sansio::jsonrpc::RawJson;
    /// # async fn work() {}
    /// # fn random() -> [u8; 16] { [0; 16] }
    /// # let unix_time = core::time::Duration::ZERO;
    /// let server = Server::new("sums", "1.0.0")
    ///     .tasks(TaskSettings::new(random, unix_time))
    ///     .tool_with(
    ///         Tool::new("sum", RawJson::EMPTY_OBJECT),
    ///         async |call: Call<NoArguments>| {
    ///             call.run_as_task();
    ///             work().await;
    ///             "42"
    ///         },
    ///     )
    ///     .task_support("sum", TaskSupport::Optional);
    /// # let _ = server;
    /// ```
    ///
    /// The tasks of a connection over a byte stream end with it. On HTTP they belong to the server,
    /// and each task to the [`Principal`] that called the tool. Without a
    /// principal, a task of 2025-11-25 belongs to the session, so that other sessions cannot list,
    /// get or cancel it; a task of the extension is accessible to every client that knows its id.
    /// Nodes that [share](mcp_sansio::http::HttpServerOptions::shared) a store answer requests
    /// about each other's tasks.
    // MCP 2026-07-28 ext-tasks:tasks#capability-negotiation [TASK-024]
    #[must_use]
    pub fn tasks(mut self, settings: TaskSettings) -> Self {
        let extensions = self.options.capabilities_mut().extensions.get_or_insert_default();
        extensions.insert(TASKS_EXTENSION, RawJson::EMPTY_OBJECT);
        // MCP 2025-11-25 basic/utilities/tasks#capabilities [CAP-016]: the catalog declares the
        // requests once a tool supports tasks.
        let tasks = TasksCapability::new()
            .list(CapabilitySettings::new())
            .cancel(CapabilitySettings::new());
        self.options.capabilities_mut().tasks.get_or_insert_with(|| tasks.into());
        self.options.edit_catalog(|catalog| _ = catalog.legacy_tasks(true));
        self.tasks = Some(TaskFactory {
            settings,
            on_stream: open_table,
            #[cfg(feature = "http")]
            on_http: open_table,
        });
        self
    }

    /// Sets whether a registered tool runs as a task, for clients of 2025-11-25, which choose the
    /// calls to run as tasks; by default no tool does. Equivalent to
    /// [`Tool::execution`](mcp_sansio::protocol::Tool::execution), for tools without a `Tool`.
    ///
    /// The handler does not change: its waits and input requests become those of the task. If a
    /// tool is `Required` to be a task, its handler should also call [`require_task`], which tells
    /// clients of later revisions.
    ///
    /// [`require_task`]: crate::Context::require_task
    // MCP 2025-11-25 basic/utilities/tasks#tool-level-negotiation [TASK-004] [TASK-005]
    #[must_use]
    pub fn task_support(mut self, tool: &str, support: TaskSupport) -> Self {
        let said = self.options.edit_catalog(|catalog| match catalog.tool(tool) {
            Some(known) => {
                let execution = ToolExecution::new().task_support(support);
                let known = known.clone().execution(execution);
                catalog.replace_tool(known).map(|_| ())
            }
            None => Err(CatalogError::NoSuchItem { kind: ItemKind::Tool, key: tool.into() }),
        });
        if let Err(problem) = said {
            self.note(problem);
        }
        self
    }
}

impl<K: Threading> Server<K> {
    /// Creates the task table of a connection, or of all HTTP clients, if the server has tasks.
    pub(crate) fn open_tasks<M: ServerBinding>(&self) -> Option<Box<dyn Tasks<M>>> {
        let factory = self.tasks.as_ref()?;
        Some(M::open_tasks(factory)(factory, self.options.limits_ref().clone()))
    }
}

/// Creates task tables with the settings of a server.
#[derive(Clone, Debug)]
pub(crate) struct TaskFactory {
    settings: TaskSettings,
    pub(crate) on_stream: OpenTasks<StreamServer>,
    #[cfg(feature = "http")]
    pub(crate) on_http: OpenTasks<HttpServerMachine>,
}

/// Creates a task table for a machine of type `M`.
pub(crate) type OpenTasks<M> = fn(&TaskFactory, Limits) -> Box<dyn Tasks<M>>;

fn open_table<M: ServerBinding>(factory: &TaskFactory, limits: Limits) -> Box<dyn Tasks<M>> {
    Box::new(TaskTable::new(factory.settings.clone(), limits))
}
