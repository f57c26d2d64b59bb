//! Threads as a runtime of [`mcp_sansio_async`].

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use mcp_sansio::Job;
use mcp_sansio_async::Runtime;

#[cfg(any(feature = "auth", feature = "http-server"))]
pub use crate::network::Listener;
use crate::threads::Threads;
use crate::{Clock, block_on};

/// Concurrent blocking handlers of the process. 512, as in tokio: others wait for one of them.
const BLOCKING_MAX: usize = 512;

/// Runs each task on a thread: connections, waiting handlers, and the deadlines of a server.
#[derive(Clone, Debug)]
pub struct ThreadRuntime {
    threads: Threads,
    refused: Arc<AtomicBool>,
}

impl ThreadRuntime {
    /// Creates a runtime with at most `threads_max` threads.
    pub(crate) fn new(name: &'static str, threads_max: usize) -> Self {
        Self { threads: Threads::new(name, threads_max), refused: Arc::default() }
    }

    /// Returns whether a task was dropped for lack of a thread.
    #[cfg(feature = "http-server")]
    pub(crate) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Runtime for ThreadRuntime {
    type Timer = Clock;

    /// Returns the unlimited runtime of the process, for tasks that the application starts one by
    /// one.
    fn current() -> Self {
        static CURRENT: OnceLock<ThreadRuntime> = OnceLock::new();
        CURRENT.get_or_init(|| Self::new("mcp-task", usize::MAX)).clone()
    }

    fn timer(&self) -> Clock {
        Clock::new()
    }

    /// Drops the task if there is no thread for it, or no descriptor to wait with.
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        let run = move || {
            let _ended = block_on(future);
        };
        if self.threads.run(run).is_err() {
            self.refused.store(true, Ordering::Relaxed);
        }
    }

    fn spawn_blocking(job: Job) {
        static BLOCKING: OnceLock<Threads> = OnceLock::new();
        let threads = BLOCKING.get_or_init(|| Threads::queueing("mcp-blocking", BLOCKING_MAX));
        // If the system is out of threads, the job is dropped.
        let _started = threads.run(job);
    }
}
