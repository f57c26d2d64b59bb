use std::io;
use std::thread::{self, JoinHandle};

use mcp_sansio_async::StopHandle;

/// A thread that can be told to end. Dropped, it is told to, and waited for.
#[derive(Debug)]
pub(crate) struct Worker<E> {
    stop: StopHandle,
    /// `None` once it is joined.
    thread: Option<JoinHandle<Result<(), E>>>,
}

impl<E: Send + 'static> Worker<E> {
    pub(crate) fn spawn(
        name: &str,
        run: impl FnOnce(&StopHandle) -> Result<(), E> + Send + 'static,
    ) -> io::Result<Self> {
        let stop = StopHandle::default();
        let stopped = stop.clone();
        let thread = thread::Builder::new().name(name.into()).spawn(move || run(&stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until it has ended by itself. Panics if the thread has.
    pub(crate) fn join(mut self) -> Result<(), E> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Tells it to end, and waits for that.
    pub(crate) fn stop(self) -> Result<(), E> {
        self.stop.stop();
        self.join()
    }
}

impl<E> Drop for Worker<E> {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // Whoever wants to know how it ended asks with `join` or `stop`.
            let _ = thread.join();
        }
    }
}
