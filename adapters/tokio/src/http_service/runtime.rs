use mcp_sansio::Instant;
use mcp_sansio_async::Timer;
use mcp_sansio_async::http_server::{Runtime, Task};
use tokio::runtime::Handle;

use crate::{TokioTimer, now};

/// The runtime that a service is of.
#[derive(Clone, Debug)]
pub(super) struct TokioRuntime(Handle);

impl TokioRuntime {
    /// The one that this is called in.
    pub(super) fn current() -> Self {
        Self(Handle::current())
    }
}

impl Runtime for TokioRuntime {
    fn now(&self) -> Instant {
        now()
    }

    fn timer(&self) -> Box<dyn Timer + Send> {
        Box::new(TokioTimer::new())
    }

    fn spawn(&self, task: Task) {
        drop(self.0.spawn(task));
    }
}
