//! smol and async-std as runtimes of [`mcp_sansio_async`].

use std::fmt;
use std::future::Future;

use mcp_sansio::Job;
use mcp_sansio_async::async_io::AsyncIo;
use mcp_sansio_async::{CatchPanic, Runtime};

#[cfg(feature = "client")]
pub use crate::child::ChildStream;
#[cfg(feature = "http-client")]
pub use crate::http_client::{AsyncExchanger, ConnectorBuilder};
pub use mcp_sansio_async::async_io::{AsyncTimer, StandardStreams};
pub use mcp_sansio_async::futures::FuturesStream;

/// The executor that runs tasks.
#[derive(Clone, Copy, Debug)]
pub struct AsyncRuntime(&'static dyn Executor);

/// An executor of a program.
pub(crate) trait Executor: fmt::Debug + Sync {
    /// Returns whether the current task is one of its own.
    fn is_current(&self) -> bool;

    /// Spawns a task.
    fn spawn(&self, task: Task);
}

/// A task that does not panic.
pub(crate) type Task = CatchPanic<dyn Future<Output = ()> + Send>;

/// The executors, of which the last one runs tasks that are spawned outside of all.
const EXECUTORS: &[&dyn Executor] = &[
    #[cfg(feature = "async-std")]
    &crate::on_async_std::AsyncStd,
    #[cfg(feature = "smol")]
    &crate::on_smol::Smol,
];

impl AsyncIo for AsyncRuntime {}

impl Runtime for AsyncRuntime {
    type Timer = AsyncTimer;

    /// Returns the executor of the current task; smol outside of async-std tasks.
    fn current() -> Self {
        let [others @ .., last] = EXECUTORS else { unreachable!("one is always there") };
        Self(*others.iter().find(|executor| executor.is_current()).unwrap_or(last))
    }

    fn timer(&self) -> AsyncTimer {
        AsyncTimer::new()
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        self.0.spawn(CatchPanic::erased(future));
    }

    fn spawn_blocking(job: Job) {
        blocking::unblock(job).detach();
    }
}
