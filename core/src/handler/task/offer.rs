use alloc::boxed::Box;

use crate::handler::kind::Kind;
use crate::handler::server::Server;
use crate::jsonrpc::RawJson;
use crate::peer::Limits;
use crate::protocol::{ServerTasksCapability, Settings, TASKS_EXTENSION};

use super::settings::TaskSettings;
use super::table::TaskTable;
use super::tasks::Tasks;

impl<K: Kind> Server<K> {
    /// Lets calls of tools go on as tasks, for clients of 2026-07-28 that know them: declares the
    /// extension `io.modelcontextprotocol/tasks`. A handler says when:
    ///
    /// ```
    /// # use mcp_sansio::handler::{Call, NoArguments, Server, TaskSettings};
    /// # use mcp_sansio::protocol::Tool;
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
    ///     );
    /// # let _ = server;
    /// ```
    ///
    /// The tasks of a connection over a byte stream end with it; on HTTP they are those of the
    /// server, and a task belongs to the [`Principal`](crate::Principal) that called the tool.
    // MCP 2026-07-28 ext-tasks:tasks#capability-negotiation [TASK-024]
    #[must_use]
    pub fn tasks(mut self, settings: TaskSettings) -> Self {
        let extensions = self.capabilities.extensions.get_or_insert_default();
        extensions.insert(TASKS_EXTENSION, RawJson::EMPTY_OBJECT);
        // MCP 2025-11-25 basic/utilities/tasks#capabilities [CAP-016]: which requests, the catalog
        // says, once a tool runs as a task.
        let tasks = ServerTasksCapability::new().list(Settings::new()).cancel(Settings::new());
        self.capabilities.tasks.get_or_insert(tasks);
        self.catalog.legacy_tasks(true);
        self.tasks = Some(Offer { settings, open: open_table });
        self
    }

    /// The tasks of a connection or of all of HTTP, if the server has tasks.
    pub(in crate::handler) fn open_tasks(&self) -> Option<Box<dyn Tasks>> {
        let offer = self.tasks.as_ref()?;
        Some((offer.open)(offer.settings.clone(), self.options.limits.clone()))
    }
}

/// That a server has tasks.
#[derive(Clone, Debug)]
pub(in crate::handler) struct Offer {
    settings: TaskSettings,
    open: fn(TaskSettings, Limits) -> Box<dyn Tasks>,
}

fn open_table(settings: TaskSettings, limits: Limits) -> Box<dyn Tasks> {
    Box::new(TaskTable::new(settings, limits))
}
