use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use super::group::Group;
use super::members::Members;
use super::stderr::StderrReader;
use super::stream::StreamControl;
use super::watch::watch;
use super::{ChildStream, ExitReport, Process, SpawnError, Started, Stderr, StderrTail};
use crate::Runtime as _;
use crate::task::{Task, spawn};
use crate::timer::timeout;

/// A server that runs as a child process and communicates over its standard streams.
///
/// Drive the stream returned with it. When the connection is over, end the child with
/// [`shutdown`](Self::shutdown); dropping this value kills the child. If the connection ends
/// unexpectedly, [`wait`](Self::wait) reports how the child exited.
///
/// The exit of the child ends the connection, even if a process that it started holds the pipe.
///
/// On Unix the child leads its own process group, and signals are sent to the whole group:
/// processes that a launcher such as a shell or a package runner has started end with it. If some
/// outlive the child, they get `SIGTERM`, and `SIGKILL` after [`GracePeriods::terminate`] or once
/// none of them holds the standard error. Ctrl-C at a terminal only reaches this process; the child
/// then reads the end of its input. On Windows the child and the processes that it started are a job
/// object, which also ends with this process.
pub struct ChildServer<P: Process> {
    group: Arc<Group>,
    stream: StreamControl<P::Stream>,
    stderr: StderrTail,
    watch: Task<io::Result<ExitStatus>>,
    status: Option<ExitStatus>,
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

impl GracePeriods {
    /// The defaults.
    pub const DEFAULT: Self =
        Self { end_of_input: Duration::from_secs(2), terminate: Duration::from_secs(2) };
}

impl Default for GracePeriods {
    fn default() -> Self {
        Self::DEFAULT
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
        let runtime = P::Runtime::current();
        #[cfg(unix)]
        let members = process.id().and_then(Members::of);
        #[cfg(windows)]
        let members = process.raw_handle().and_then(Members::of);
        let group = Arc::new(Group::new(process.id(), members));
        let tail = StderrTail::default();
        let reader = StderrReader::start::<P>(&runtime, stderr, sink, tail.clone());
        let stream = ChildStream::new(stream, runtime.clone());
        let control = stream.control();
        let watched = watch(process, Arc::clone(&group), control.clone(), reader, runtime.clone());
        let watch = spawn(&runtime, watched);
        let server = Self { group, stream: control, stderr: tail, watch, status: None, runtime };
        Ok((server, stream))
    }

    /// Returns the process id, or `None` once the child has exited.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.group.id()
    }

    /// Returns the last lines of the child's standard error so far.
    // MCP 2025-11-25 basic/transports#stdio [STDIO-006]: output there is not an error.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.stderr.lines()
    }

    /// Waits until the child exits, and reports how. Processes that it leaves behind end first.
    /// Cancel-safe.
    ///
    /// # Errors
    ///
    /// The system has lost the child: other code in this process has already waited for it.
    pub async fn wait(&mut self) -> io::Result<ExitReport> {
        let status = self.exit().await?;
        Ok(self.report(status, false))
    }

    /// Ends the child and the processes that it started: closes its input, waits, then terminates
    /// them, gracefully at first.
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
        self.group.start_shutdown();
        self.stream.close_input();
        let runtime = self.runtime.clone();
        if let Some(status) = timeout(&runtime, grace_periods.end_of_input, self.exit()).await {
            return Ok(self.report(status?, false));
        }
        #[cfg(unix)]
        {
            self.group.terminate();
            if let Some(status) = timeout(&runtime, grace_periods.terminate, self.exit()).await {
                return Ok(self.report(status?, true));
            }
        }
        self.kill();
        let status = self.exit().await?;
        Ok(self.report(status, true))
    }

    /// Waits until the child and the processes that it left behind have ended.
    async fn exit(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let lost = || io::Error::other("the runtime has dropped the task that waits for the child");
        let status = (&mut self.watch).await.ok_or_else(lost)??;
        self.status = Some(status);
        Ok(status)
    }

    fn report(&self, status: ExitStatus, forced: bool) -> ExitReport {
        ExitReport::new(status, self.stderr.lines(), forced)
    }

    /// Kills the child, and the processes that it started. To end them gracefully, use
    /// [`shutdown`](Self::shutdown).
    pub fn kill(&mut self) {
        self.group.kill();
    }
}

impl<P: Process> Drop for ChildServer<P> {
    fn drop(&mut self) {
        self.kill();
    }
}

impl<P: Process> fmt::Debug for ChildServer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildServer").field("id", &self.id()).finish_non_exhaustive()
    }
}
