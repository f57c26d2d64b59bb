use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::{self, Write as _};
use core::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::Principal;
use mcp_sansio::protocol::Task;

use super::entry::Entry;
use super::timestamp::iso_8601;

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
    /// running handler. A call beyond the limit stays a call, whose client waits for its answer.
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
    /// together. 64 MiB by default. A call beyond the limit stays a call; a result beyond the limit
    /// is dropped, and its task fails.
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

impl fmt::Debug for TaskSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskSettings")
            .field("ttl", &self.ttl)
            .field("poll_interval", &self.poll_interval)
            .field("tasks_max", &self.tasks_max)
            .field("tasks_per_requestor_max", &self.tasks_per_requestor_max)
            .field("bytes_max", &self.bytes_max)
            .finish_non_exhaustive()
    }
}
