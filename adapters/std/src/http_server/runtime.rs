use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_sansio_async::Runtime;

use crate::threads::Threads;
use crate::{Clock, block_on};

/// Tasks at once, each on a thread. 1,024: as many threads as systems give a process without asking.
/// The handler that would be one more is answered for with an internal error.
const TASKS_MAX: usize = 1024;

/// Runs tasks on threads: handlers that wait, and what keeps a server's deadlines.
#[derive(Clone, Debug)]
pub(super) struct ThreadRuntime {
    threads: Threads,
    refused: Arc<AtomicBool>,
}

impl ThreadRuntime {
    /// Whether there was no thread for a task.
    pub(super) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Runtime for ThreadRuntime {
    type Timer = Clock;

    fn current() -> Self {
        Self { threads: Threads::new("mcp-handler", TASKS_MAX), refused: Arc::default() }
    }

    fn timer(&self) -> Clock {
        Clock::new()
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        let run = move || {
            // Without descriptors to wait with it is dropped, as it is without a thread.
            let _ended = block_on(future);
        };
        if self.threads.run(run).is_err() {
            self.refused.store(true, Ordering::Relaxed);
        }
    }
}
