use std::fmt;
use std::future::Future;
use std::pin::Pin;

use mcp_sansio::Instant;

use crate::Timer;

/// What a server on HTTP needs of a runtime.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// The time it is on the clock of all its timers.
    fn now(&self) -> Instant;

    /// A timer that waits for nothing yet.
    fn timer(&self) -> Box<dyn Timer + Send>;

    /// Runs `task` on its own. This may be asked for on a thread that the runtime does not know: a
    /// response may be dropped anywhere. A task that panics ends nothing but itself.
    fn spawn(&self, task: Task);
}

/// What a server has a [`Runtime`] run.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
