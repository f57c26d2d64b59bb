use std::io;
use std::thread::{self, JoinHandle};

use mcp_sansio_async::{ByteStream, Driver, Settings};
use mcp_sansio_handlers::Endpoint;

use crate::stop::Stop;
use crate::{Clock, Error, block_on};

/// A connection that is driven on a thread of its own, so that other threads can
/// [`wait`](crate::Wait::wait) for what comes of it.
///
/// Dropped, it ends the connection as [`stop`](Self::stop) does. Neither may happen on the
/// connection's own thread, that is in a handler.
#[derive(Debug)]
pub struct Background {
    stop: Stop,
    /// `None` once it is joined.
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Background {
    /// Starts to drive `endpoint` over `stream`.
    ///
    /// # Errors
    ///
    /// The system is out of threads.
    pub fn spawn(
        endpoint: impl Endpoint + Send + 'static,
        stream: impl ByteStream + Send + 'static,
    ) -> io::Result<Self> {
        Self::with_settings(endpoint, stream, Settings::default())
    }

    /// Starts to drive `endpoint` over `stream`, with settings of the caller's.
    ///
    /// # Errors
    ///
    /// The system is out of threads.
    pub fn with_settings(
        endpoint: impl Endpoint + Send + 'static,
        stream: impl ByteStream + Send + 'static,
        settings: Settings,
    ) -> io::Result<Self> {
        Self::start(move |stopped| {
            let driver = Driver::with_settings(endpoint, stream, Clock::new(), settings);
            let outcome = block_on(stopped.guard(driver))?;
            Ok(outcome.unwrap_or(Ok(()))?)
        })
    }

    fn start(run: impl FnOnce(&Stop) -> Result<(), Error> + Send + 'static) -> io::Result<Self> {
        let stop = Stop::default();
        let stopped = stop.clone();
        let run = move || run(&stopped);
        let thread = thread::Builder::new().name("mcp-connection".into()).spawn(run)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the connection has ended by itself.
    ///
    /// # Errors
    ///
    /// The stream cannot be waited for, or broke. That the other side has gone is no error.
    pub fn join(mut self) -> Result<(), Error> {
        self.finish()
    }

    /// Ends the connection where it stands and waits for its thread: endpoint and stream are
    /// dropped, and nothing more is sent. To end it in good order, close the endpoint and
    /// [`join`](Self::join).
    ///
    /// # Errors
    ///
    /// It had broken before.
    pub fn stop(mut self) -> Result<(), Error> {
        self.stop.stop();
        self.finish()
    }

    fn finish(&mut self) -> Result<(), Error> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // Whoever wants to know how it ended asks with `join` or `stop`.
            let _ = thread.join();
        }
    }
}
