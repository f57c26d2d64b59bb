use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use super::stderr::StderrReader;
use super::stream::InputCloser;
use super::{ChildStream, ExitReport, Process, SpawnError, Started, Stderr};
use crate::timer::timeout;

/// A server that runs as a child process and communicates over its standard streams.
///
/// Drive the stream returned with it. When the connection is over, end the child with
/// [`shutdown`](Self::shutdown); dropping this value kills the child. If the connection ends
/// unexpectedly, [`wait`](Self::wait) reports how the child exited.
///
/// On Unix the child leads its own process group, and signals are sent to the whole group:
/// processes that a launcher such as a shell or a package runner has started end with it. As a
/// result, Ctrl-C at a terminal only reaches this process; the child then reads the end of its
/// input.
pub struct ChildServer<P: Process> {
    process: P,
    /// Whether the child has been waited for: its process id may have been reused since.
    has_exited: bool,
    input: InputCloser<P::Stream>,
    stderr: StderrReader,
    runtime: P::Runtime,
}

/// How long [`ChildServer::shutdown`] waits at each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GracePeriods {
    /// Time from closing the child's input to `SIGTERM`, on Windows to termination. 2 s: an idle
    /// server needs a few milliseconds.
    pub end_of_input: Duration,
    /// Time from `SIGTERM` to `SIGKILL`. 2 s.
    pub terminate: Duration,
}

impl Default for GracePeriods {
    fn default() -> Self {
        Self { end_of_input: Duration::from_secs(2), terminate: Duration::from_secs(2) }
    }
}

impl<P: Process> ChildServer<P> {
    /// Starts a command, a `std::process::Command` or that of the runtime, and keeps the last lines
    /// of its standard error.
    ///
    /// # Errors
    ///
    /// The process did not start: see [`SpawnError`], whose message is meant for the user.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`](crate::Runtime::current) does.
    pub fn spawn(
        command: impl Into<P::Command>,
    ) -> Result<(Self, ChildStream<P::Stream>), SpawnError> {
        Self::spawn_with(command, Stderr::Keep)
    }

    /// Like [`spawn`](Self::spawn), with the given handling of standard error.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
    // MCP 2025-11-25 basic/transports#stdio [STDIO-007]: the client launches the server as a
    // subprocess and communicates over its standard streams.
    pub fn spawn_with(
        command: impl Into<P::Command>,
        stderr: Stderr,
    ) -> Result<(Self, ChildStream<P::Stream>), SpawnError> {
        Self::start(&mut command.into(), stderr)
    }

    /// Starts a command that can be started again.
    pub(super) fn start(
        command: &mut P::Command,
        sink: Stderr,
    ) -> Result<(Self, ChildStream<P::Stream>), SpawnError> {
        let Started { process, stream, stderr } = P::start(command)?;
        let runtime = crate::Runtime::current();
        let stderr = StderrReader::start::<P>(&runtime, stderr, sink);
        let stream = ChildStream::new(stream);
        let server =
            Self { process, has_exited: false, input: stream.input_closer(), stderr, runtime };
        Ok((server, stream))
    }

    /// Returns the process id, or `None` once the child has exited and been waited for.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        if self.has_exited { None } else { self.process.id() }
    }

    /// Returns the last lines of the child's standard error so far.
    // MCP 2025-11-25 basic/transports#stdio [STDIO-006]: output there is not an error.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.stderr.tail()
    }

    /// Waits until the child exits, and reports how. Cancel-safe.
    ///
    /// # Errors
    ///
    /// The system has lost the child: other code in this process has already waited for it.
    pub async fn wait(&mut self) -> io::Result<ExitReport> {
        let status = self.exit().await?;
        Ok(self.report(status, false).await)
    }

    /// Ends the child: closes its input, waits, then terminates it, gracefully at first.
    ///
    /// Keep driving its stream meanwhile, or drop it: the child does not exit while it is blocked
    /// on writing its output.
    ///
    /// # Errors
    ///
    /// The system has lost the child: other code in this process has already waited for it.
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-016]: close the input, wait, then
    // terminate forcibly.
    // MCP 2025-11-25 basic/lifecycle#shutdown [STDIO-015]: SIGTERM, then SIGKILL.
    pub async fn shutdown(mut self, grace_periods: GracePeriods) -> io::Result<ExitReport> {
        self.input.close();
        let runtime = self.runtime.clone();
        if let Some(status) = timeout(&runtime, grace_periods.end_of_input, self.exit()).await {
            return Ok(self.report(status?, false).await);
        }
        #[cfg(unix)]
        {
            self.signal(rustix::process::Signal::TERM);
            if let Some(status) = timeout(&runtime, grace_periods.terminate, self.exit()).await {
                return Ok(self.report(status?, true).await);
            }
        }
        self.kill();
        let status = self.exit().await?;
        Ok(self.report(status, true).await)
    }

    async fn exit(&mut self) -> io::Result<ExitStatus> {
        let status = self.process.wait().await?;
        self.has_exited = true;
        Ok(status)
    }

    async fn report(&mut self, status: ExitStatus, forced: bool) -> ExitReport {
        self.stderr.drain(&self.runtime).await;
        ExitReport::new(status, self.stderr.tail(), forced)
    }

    /// Kills the child if it has not exited; on Unix with its process group. To end it gracefully,
    /// use [`shutdown`](Self::shutdown).
    pub fn kill(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        self.process.kill();
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        // The id is present only until the child has been waited for, so the system cannot have
        // reused it for another process.
        let id = self.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(rustix::process::Pid::from_raw) {
            // A failure means that it has exited.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

impl<P: Process> Drop for ChildServer<P> {
    fn drop(&mut self) {
        self.kill();
    }
}

impl<P: Process> fmt::Debug for ChildServer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildServer").field("process", &self.process).finish_non_exhaustive()
    }
}
