//! Threads as a runtime of [`mcp_sansio_async`].

use std::future::{Future, poll_fn};
use std::thread;
use std::time::Duration;

use mcp_sansio::Job;
use mcp_sansio_async::async_io::AsyncIo;
use mcp_sansio_async::{Runtime, Timer as _};

use crate::Clock;
#[cfg(feature = "client")]
pub use crate::child::ChildStream;
#[cfg(feature = "http-client")]
pub use crate::http_client::ConnectorBuilder;

/// Runs each task on its own thread: connections, waiting handlers, and the deadlines of a server.
/// A task that blocks delays no other.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ThreadRuntime;

impl AsyncIo for ThreadRuntime {}

impl Runtime for ThreadRuntime {
    type Timer = Clock;

    /// Each connection has a thread. Including waiting handlers, this stays within the threads and
    /// descriptors that systems grant a process by default.
    const CONNECTIONS_MAX: usize = 512;

    /// Each handler that has to wait has a thread: a number that systems grant a process by default.
    const HANDLERS_MAX: usize = 1000;

    fn current() -> Self {
        Self
    }

    fn timer(&self) -> Clock {
        Clock::new()
    }

    /// Drops the task if the system is out of threads.
    fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        // A panic ends the thread only.
        drop(thread::Builder::new().name("mcp-task".into()).spawn(|| block_on(future)));
    }

    fn spawn_blocking(job: Job) {
        blocking::unblock(job).detach();
    }
}

// ------------------------------------------------------------------ block on

/// Runs `future` to its end on this thread, which also waits for the streams and timers that it
/// uses. The future need not be `Send`; its wakers work from any thread.
///
/// The future must not block the thread for long, since everything else in it waits meanwhile. A
/// nested `block_on` is allowed, but blocks the outer one.
pub fn block_on<F: Future>(future: F) -> F::Output {
    async_io::block_on(future)
}

/// Waits without blocking the thread: for the delays of [`Servers`](crate::Servers).
pub async fn sleep(time: Duration) {
    let mut clock = Clock::new();
    let deadline = clock.now() + time;
    poll_fn(|cx| clock.poll_until(cx, deadline)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::now;

    #[test]
    fn a_sleep_ends_after_its_time() {
        let start = now();
        block_on(sleep(Duration::from_millis(5)));
        assert!(now() >= start + Duration::from_millis(5));
    }

    #[test]
    fn one_block_on_may_be_inside_of_another() {
        assert_eq!(block_on(async { block_on(async { 7 }) }), 7);
    }
}
