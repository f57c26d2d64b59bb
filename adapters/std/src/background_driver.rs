use std::thread::JoinHandle;
use std::{io, thread};

use mcp_sansio_async::{ByteStream, StopHandle, StreamSettings};
use mcp_sansio_handlers::endpoint::Endpoint;

use crate::serve::driver;
use crate::{Error, block_on};

/// A connection driven by its own thread, so that other threads can [`wait`](crate::Wait::wait) for
/// results.
///
/// Dropping it ends the connection like [`stop`](Self::stop). Neither may happen on the
/// connection's own thread, that is in a handler.
///
/// ```
/// # #[cfg(not(unix))]
/// # fn main() {}
/// # #[cfg(unix)]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::os::unix::net::UnixStream;
/// use mcp_sansio_std::{self as mcp, BackgroundDriver, FdStream, Host, Server, Wait};
///
/// let (near, far) = UnixStream::pair()?;
/// let server = Server::new("clock", "1.0.0").endpoint(mcp::seed())?;
/// let serving = BackgroundDriver::spawn(server, FdStream::try_from(far)?)?;
///
/// let (client, endpoint) = Host::new("demo", "1.0.0").connect(mcp::seed(), mcp::now());
/// let driver = BackgroundDriver::spawn(endpoint, FdStream::try_from(near)?)?;
/// client.opened().wait()?;
/// # drop((serving, driver));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BackgroundDriver(Worker<Error>);

impl BackgroundDriver {
    /// Starts to drive `endpoint` over `stream`.
    ///
    /// # Errors
    ///
    /// The system is out of threads.
    pub fn spawn(
        endpoint: impl Endpoint + Send + 'static,
        stream: impl ByteStream + Send + 'static,
    ) -> io::Result<Self> {
        Self::with_settings(endpoint, stream, StreamSettings::default())
    }

    /// Starts to drive `endpoint` over `stream` with the given settings.
    ///
    /// # Errors
    ///
    /// The system is out of threads.
    pub fn with_settings(
        endpoint: impl Endpoint + Send + 'static,
        stream: impl ByteStream + Send + 'static,
        settings: StreamSettings,
    ) -> io::Result<Self> {
        let run = move |stop: &StopHandle| {
            let driver = driver(endpoint, stream, settings);
            Ok(block_on(stop.until_stopped(driver)).unwrap_or(Ok(()))?)
        };
        Worker::spawn("mcp-connection", run).map(Self)
    }

    /// Returns whether the connection has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits until the connection has ended.
    ///
    /// # Errors
    ///
    /// The stream cannot be waited for, or broke. A disconnect of the peer is not an error.
    pub fn join(self) -> Result<(), Error> {
        self.0.join()
    }

    /// Aborts the connection and waits for its thread: endpoint and stream are dropped, and nothing
    /// more is sent. To end it gracefully, close the endpoint and call [`join`](Self::join).
    ///
    /// # Errors
    ///
    /// The connection had already broken.
    pub fn stop(self) -> Result<(), Error> {
        self.0.stop()
    }
}

// ------------------------------------------------------------------ worker

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
