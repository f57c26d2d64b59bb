//! smol and async-std as runtimes of [`mcp_sansio_async`].

use std::future::Future;

use mcp_sansio::Job;
use mcp_sansio_async::async_io::AsyncIo;
use mcp_sansio_async::{CatchPanic, Runtime};

use crate::AsyncTimer;

#[cfg(feature = "http-client")]
pub use mcp_sansio_async::async_io::dial::{ReadWrite, Stream};
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub use mcp_sansio_async::async_io::network::Listener;
#[cfg(feature = "client")]
pub use mcp_sansio_async::async_io::process::{ChildInput, Command};

/// A child process managed by `async-process`.
#[cfg(feature = "client")]
pub type AsyncProcess = mcp_sansio_async::async_io::process::AsyncProcess<AsyncRuntime>;

/// The executor that runs tasks.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum AsyncRuntime {
    /// The global executor of smol.
    #[cfg(feature = "smol")]
    Smol,
    /// The executor of async-std.
    #[cfg(feature = "async-std")]
    AsyncStd,
}

impl AsyncIo for AsyncRuntime {}

impl Runtime for AsyncRuntime {
    type Timer = AsyncTimer;

    /// Returns the executor of the current task; smol outside of async-std tasks.
    fn current() -> Self {
        #[cfg(all(feature = "smol", feature = "async-std"))]
        return if async_std::task::try_current().is_some() { Self::AsyncStd } else { Self::Smol };
        #[cfg(all(feature = "smol", not(feature = "async-std")))]
        return Self::Smol;
        #[cfg(not(feature = "smol"))]
        Self::AsyncStd
    }

    fn timer(&self) -> AsyncTimer {
        AsyncTimer::new()
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        let future = CatchPanic::new(future);
        match self {
            #[cfg(feature = "smol")]
            Self::Smol => smol::spawn(future).detach(),
            #[cfg(feature = "async-std")]
            Self::AsyncStd => drop(async_std::task::spawn(future)),
        }
    }

    fn spawn_blocking(job: Job) {
        blocking::unblock(job).detach();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panicking_task_ends_only_itself() {
        for runtime in [
            #[cfg(feature = "smol")]
            AsyncRuntime::Smol,
            #[cfg(feature = "async-std")]
            AsyncRuntime::AsyncStd,
        ] {
            let (sender, receiver) = std::sync::mpsc::channel();
            for number in [0, 7] {
                let sender = sender.clone();
                runtime.spawn(async move {
                    assert_eq!(number, 7, "for the test");
                    sender.send(number).unwrap();
                });
            }
            assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(10)), Ok(7));
        }
    }

    #[cfg(all(feature = "smol", feature = "async-std"))]
    #[test]
    fn tasks_are_spawned_where_the_task_is_that_spawns_them() {
        let of_smol = smol::block_on(async { AsyncRuntime::current() });
        assert!(matches!(of_smol, AsyncRuntime::Smol));
        let of_async_std = async_std::task::block_on(async { AsyncRuntime::current() });
        assert!(matches!(of_async_std, AsyncRuntime::AsyncStd));
    }
}
