use alloc::boxed::Box;

use mcp_sansio::catalog::{CatalogError, ItemKind};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::{
    CapabilitySettings, ServerTasksCapability, TASKS_EXTENSION, TaskSupport, ToolExecution,
};

#[cfg(feature = "http")]
use crate::http_server::HttpServerMachine;
use crate::server::Server;
use crate::server_binding::ServerBinding;
use crate::server_endpoint::StreamServer;
use crate::threading::Threading;

use super::settings::TaskSettings;
use super::table::TaskTable;
use super::tasks::Tasks;

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
    /// and each task to the [`Principal`](mcp_sansio::Principal) that called the tool. Without a
    /// principal, a task of 2025-11-25 belongs to the session, so that other sessions cannot list,
    /// get or cancel it; a task of the extension is accessible to every client that knows its id.
    /// Nodes that [share](mcp_sansio::http::HttpServerOptions::shared) a store answer requests about
    /// each other's tasks.
    // MCP 2026-07-28 ext-tasks:tasks#capability-negotiation [TASK-024]
    #[must_use]
    pub fn tasks(mut self, settings: TaskSettings) -> Self {
        let extensions = self.options.capabilities_mut().extensions.get_or_insert_default();
        extensions.insert(TASKS_EXTENSION, RawJson::EMPTY_OBJECT);
        // MCP 2025-11-25 basic/utilities/tasks#capabilities [CAP-016]: the catalog declares the
        // requests once a tool supports tasks.
        let tasks = ServerTasksCapability::new()
            .list(CapabilitySettings::new())
            .cancel(CapabilitySettings::new());
        self.options.capabilities_mut().tasks.get_or_insert(tasks);
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
