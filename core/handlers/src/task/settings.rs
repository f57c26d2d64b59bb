use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::{self, Write as _};
use core::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::Principal;
use mcp_sansio::protocol::Task;

use super::entry::Entry;
use super::timestamp::iso_8601;

/// Who wants to know of every task.
type Observer = Arc<dyn Fn(TaskEvent, &Task, Option<&Principal>) + Send + Sync>;

/// What there is to know of a task, for whoever [observes](TaskSettings::observe) them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskEvent {
    /// It was made.
    Created,
    /// Its status changed.
    Changed,
    /// Its result was fetched by a client of 2025-11-25.
    Retrieved,
    /// Its time is over: it is forgotten, done or not.
    Dropped,
}

/// That a server has tasks, what they are named by, and what they may cost: see
/// [`Server::tasks`](crate::Server::tasks).
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
    /// The defaults.
    ///
    /// `entropy` gives the names of tasks, one with each call: 128 bits from a secure source. Who
    /// knows the name of a task that belongs to no [`Principal`] has the task, so a seed as the
    /// machines have it is not enough.
    ///
    /// `epoch` is the time since 1970 at [`Instant::ZERO`], for the times of day that clients are
    /// told.
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

    /// How long a task is kept from its making on; what is not done by then is given up. One hour
    /// by default: enough to come back after a crash. Never without end: a client need not say
    /// that it has no use for a result any more. A client of 2025-11-25 may ask for less.
    // MCP 2025-11-25 basic/utilities/tasks#ttl-and-resource-management [TASK-011] [TASK-023]
    #[must_use]
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How often clients are to ask. Every second by default: what people notice and servers do
    /// not.
    #[must_use]
    pub const fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }

    /// Tasks that are kept at once, running or done. 1,024 by default: each may have a handler at
    /// work. A call beyond stays a call, whose client waits for its answer.
    #[must_use]
    pub const fn tasks_max(mut self, tasks: usize) -> Self {
        self.tasks_max = tasks;
        self
    }

    /// Tasks of [`tasks_max`](Self::tasks_max) that one principal, or one session of somebody
    /// unknown, may have. 256 by default: a quarter, so that one cannot keep the others out.
    /// Clients of 2026-07-28 that nobody knows share those of all.
    // MCP 2025-11-25 basic/utilities/tasks#resource-management [TASK-023]
    #[must_use]
    pub const fn tasks_per_requestor_max(mut self, tasks: usize) -> Self {
        self.tasks_per_requestor_max = tasks;
        self
    }

    /// Shows `observer` what becomes of every task, and whose it is, for logs. It must be quick.
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
        if let Some(observer) = &self.observer {
            observer(news, &entry.task, entry.requestor.principal.as_ref());
        }
    }

    /// Bytes of requests, questions, answers and results that all tasks may hold together. 64 MiB
    /// by default. A call beyond stays a call; a result beyond is lost, and its task fails.
    #[must_use]
    pub const fn bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// A new name.
    pub(super) fn draw(&self) -> String {
        let mut name = String::with_capacity(32);
        for byte in (self.entropy)() {
            let written = write!(name, "{byte:02x}");
            debug_assert!(written.is_ok(), "a string takes what it is given");
        }
        name
    }

    /// The time of day.
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
