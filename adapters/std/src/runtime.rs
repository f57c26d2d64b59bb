//! Threads, as [`mcp_sansio_async`] takes a runtime.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use mcp_sansio_async::Runtime;

#[cfg(any(feature = "auth", feature = "http-server"))]
pub use crate::network::Listener;
use crate::threads::Threads;
use crate::{Clock, block_on};

/// Runs tasks, each on a thread: connections, handlers that wait, what keeps a server's deadlines.
#[derive(Clone, Debug)]
pub struct ThreadRuntime {
    threads: Threads,
    refused: Arc<AtomicBool>,
}

impl ThreadRuntime {
    /// A runtime with at most `threads_max` threads of its own.
    pub(crate) fn new(name: &'static str, threads_max: usize) -> Self {
        Self { threads: Threads::new(name, threads_max), refused: Arc::default() }
    }

    /// Whether there was no thread for a task.
    #[cfg(feature = "http-server")]
    pub(crate) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Runtime for ThreadRuntime {
    type Timer = Clock;

    /// That of the process, for what the application asks for one by one: it has no bound.
    fn current() -> Self {
        static CURRENT: OnceLock<ThreadRuntime> = OnceLock::new();
        CURRENT.get_or_init(|| Self::new("mcp-task", usize::MAX)).clone()
    }

    fn timer(&self) -> Clock {
        Clock::new()
    }

    /// A task for which there is no thread is dropped, and so is one without descriptors to wait with.
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        let run = move || {
            let _ended = block_on(future);
        };
        if self.threads.run(run).is_err() {
            self.refused.store(true, Ordering::Relaxed);
        }
    }
}
