use std::io;
use std::thread::{self, JoinHandle};

use mcp_sansio_async::StopHandle;

/// A thread that can be stopped. Dropping it stops the thread and waits for it.
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

    /// Waits until the thread has ended. Panics if the thread panicked.
    pub(crate) fn join(mut self) -> Result<(), E> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Stops the thread and waits for it.
    pub(crate) fn stop(self) -> Result<(), E> {
        self.stop.stop();
        self.join()
    }
}

impl<E> Drop for Worker<E> {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // `join` and `stop` report the result; here it is ignored.
            let _ = thread.join();
        }
    }
}
