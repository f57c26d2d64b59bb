//! Threads as a runtime of [`mcp_sansio_async`].

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mcp_sansio::Job;
use mcp_sansio_async::Runtime;
use mcp_sansio_async::async_io::AsyncIo;

#[cfg(feature = "http-client")]
pub use mcp_sansio_async::async_io::dial::{ReadWrite, Stream};
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub use mcp_sansio_async::async_io::network::Listener;
#[cfg(feature = "client")]
pub use mcp_sansio_async::async_io::process::{ChildInput, Command};

use crate::{Clock, block_on};

/// A child process managed by `async-process`.
#[cfg(feature = "client")]
pub type AsyncProcess = mcp_sansio_async::async_io::process::AsyncProcess<ThreadRuntime>;

/// Runs each task on its own thread: connections, waiting handlers, and the deadlines of a server.
/// A task that blocks delays no other.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ThreadRuntime;

/// Tasks that were dropped because the system was out of threads.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// Returns how many tasks were dropped because the system was out of threads.
#[cfg(feature = "http-server")]
pub(crate) fn refused_threads() -> usize {
    REFUSED.load(Ordering::Relaxed)
}

impl AsyncIo for ThreadRuntime {}

impl Runtime for ThreadRuntime {
    type Timer = Clock;

    fn current() -> Self {
        Self
    }

    fn timer(&self) -> Clock {
        Clock::new()
    }

    /// Drops the task if the system is out of threads.
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        // A panic ends the thread only.
        let started = thread::Builder::new().name("mcp-task".into()).spawn(|| block_on(future));
        if started.is_err() {
            REFUSED.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn spawn_blocking(job: Job) {
        blocking::unblock(job).detach();
    }
}
