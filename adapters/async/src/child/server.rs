use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use super::stderr::StderrReader;
use super::stream::InputCloser;
use super::{ChildStream, ExitReport, Process, SpawnError, Started, Stderr};
use crate::timer::timeout;

/// A server that runs as a child process and talks over its standard streams.
///
/// Drive the stream that comes with it. When the connection is over, end the child with
/// [`shutdown`](Self::shutdown); to drop it is to kill it. When the connection ends and nobody
/// wanted it to, [`wait`](Self::wait) says what happened to the child.
///
/// On Unix the child leads a process group of its own, and the signals go to all of the group: what
/// a launcher such as a shell or a package runner has started ends with it. It also means that a
/// Ctrl-C at a terminal is for this process alone; the child then reads the end of its input.
pub struct ChildServer<P: Process> {
    process: P,
    /// Whether it was waited for: its process id may be another's by now.
    has_exited: bool,
    input: InputCloser<P::Stream>,
    stderr: StderrReader,
    runtime: P::Runtime,
}

/// How long [`ChildServer::shutdown`] waits before it becomes more insistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracePeriods {
    /// From the end of the child's input to `SIGTERM`, on Windows to termination. 2 s: a server
    /// that is working on nothing needs a few milliseconds.
    pub end_of_input: Duration,
    /// From `SIGTERM` to `SIGKILL`. 2 s.
    pub terminate: Duration,
}

impl Default for GracePeriods {
    fn default() -> Self {
        Self { end_of_input: Duration::from_secs(2), terminate: Duration::from_secs(2) }
    }
}

impl<P: Process> ChildServer<P> {
    /// Starts a command, a `std::process::Command` or one of the runtime, and keeps the last lines of
    /// its standard error.
    ///
    /// # Errors
    ///
    /// It did not start: see [`SpawnError`], whose message is for the user.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`](crate::Runtime::current) does.
    pub fn spawn(
        command: impl Into<P::Command>,
    ) -> Result<(Self, ChildStream<P::Stream>), SpawnError> {
        Self::spawn_with(command, Stderr::Keep)
    }

    /// As [`spawn`](Self::spawn), and does with the child's standard error what `stderr` says.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
    // MCP 2025-11-25 basic/transports#stdio [STDIO-007]: the client launches the server as a
    // subprocess and talks over its standard streams.
    pub fn spawn_with(
        command: impl Into<P::Command>,
        stderr: Stderr,
    ) -> Result<(Self, ChildStream<P::Stream>), SpawnError> {
        Self::start(&mut command.into(), stderr)
    }

    /// Starts a command, which can be started again.
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

    /// The process id, `None` once the child has exited and was waited for.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        if self.has_exited { None } else { self.process.id() }
    }

    /// The last lines of the child's standard error so far.
    // MCP 2025-11-25 basic/transports#stdio [STDIO-006]: words there are no sign of an error.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.stderr.tail()
    }

    /// Waits until the child exits by itself, and reports. May be dropped and called again.
    ///
    /// # Errors
    ///
    /// The system has lost the child: something else in this process has waited for it.
    pub async fn wait(&mut self) -> io::Result<ExitReport> {
        let status = self.exit().await?;
        Ok(self.report(status, false).await)
    }

    /// Ends the child: closes its input, waits, then has the system end it, gently at first.
    ///
    /// Drive or drop its stream meanwhile: while the child waits for someone to read its output, it
    /// does not exit.
    ///
    /// # Errors
    ///
    /// The system has lost the child: something else in this process has waited for it.
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

    /// Ends a child that has not exited, and on Unix its group.
    fn kill(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        self.process.kill();
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        // There is an id as long as nobody has waited for the child, so that the system has not
        // given it to another process.
        let id = self.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(rustix::process::Pid::from_raw) {
            // It has exited if this fails.
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
