use std::fmt;
use std::future::Future;
use std::io;
use std::process::ExitStatus;
use std::task::{Context, Poll};

use super::SpawnError;
use crate::{ByteStream, Runtime};

/// A child process of a runtime.
pub trait Process: fmt::Debug + Send + Sized + 'static {
    /// The runtime that manages the process.
    type Runtime: Runtime;

    /// The command that starts the process.
    type Command: Send + 'static;

    /// Its standard output and input. [`ByteStream::poll_close`] closes the pipe of the input.
    type Stream: ByteStream + Send + Unpin + 'static;

    /// Its standard error.
    type Stderr: Send + 'static;

    /// Starts a command with pipes for its three standard streams; on Unix in its own process
    /// group. It may be called more than once. The process is killed when the value is dropped.
    ///
    /// # Errors
    ///
    /// The process did not start.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`] does.
    fn start(command: &mut Self::Command) -> Result<Started<Self>, SpawnError>;

    /// Returns the process id, or `None` once the process has been waited for.
    fn id(&self) -> Option<u32>;

    /// Returns the handle of the process, or `None` once the process has been waited for.
    #[cfg(windows)]
    fn raw_handle(&self) -> Option<std::os::windows::io::RawHandle>;

    /// Waits until the process has exited, and returns its status. It can be called again.
    /// Cancel-safe.
    fn wait(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + Send;

    /// Kills the process, unless it has exited.
    fn kill(&mut self);

    /// Reads from the standard error of the process, as [`ByteStream::poll_read`] does.
    ///
    /// # Errors
    ///
    /// The standard error is broken. It is not read from again.
    fn poll_stderr(
        stderr: &mut Self::Stderr,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>>;

    /// Writes to the standard error of this process, without blocking the thread. Errors are ignored.
    fn forward(text: String) -> impl Future<Output = ()> + Send;
}

/// A process that was started, and its streams.
#[derive(Debug)]
#[non_exhaustive]
pub struct Started<P: Process> {
    /// The process.
    pub process: P,
    /// Its standard output and input.
    pub stream: P::Stream,
    /// Its standard error.
    pub stderr: P::Stderr,
}

impl<P: Process> Started<P> {
    /// Combines a process with its streams.
    #[must_use]
    pub const fn new(process: P, stream: P::Stream, stderr: P::Stderr) -> Self {
        Self { process, stream, stderr }
    }
}
