//! Servers that a client starts by itself, as child processes.

mod input;
mod stderr;

use std::fmt;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::TokioStream;

pub use input::ChildInput;
pub use mcp_sansio_async::child::{ExitReport, SpawnError, Stderr};

/// The standard output and input of a child process, as a [`ByteStream`](crate::ByteStream).
pub type ChildStream = TokioStream<ChildStdout, ChildInput>;

/// A server that runs as a child process and talks over its standard streams.
///
/// Drive the stream that comes with it. When the connection is over, end the child with
/// [`shutdown`](Self::shutdown); to drop it is to kill it. When the connection ends and nobody
/// wanted it to, [`wait`](Self::wait) says what happened to the child.
///
/// On Unix the child leads a process group of its own, and the signals go to all of the group: what
/// a launcher such as a shell or a package runner has started ends with it. It also means that a
/// Ctrl-C at a terminal is for this process alone; the child then reads the end of its input.
pub struct ChildServer {
    child: Child,
    input: ChildInput,
    stderr: stderr::Reader,
}

/// How long [`ChildServer::shutdown`] waits before it becomes more insistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graces {
    /// From the end of the child's input to `SIGTERM`, on Windows to termination. 2 s: a server
    /// that is working on nothing needs a few milliseconds.
    pub end_of_input: Duration,
    /// From `SIGTERM` to `SIGKILL`. 2 s.
    pub terminate: Duration,
}

impl Default for Graces {
    fn default() -> Self {
        Self { end_of_input: Duration::from_secs(2), terminate: Duration::from_secs(2) }
    }
}

impl ChildServer {
    /// Starts `command`, a [`Command`] of tokio or of the standard library, and keeps the last
    /// lines of its standard error.
    ///
    /// # Errors
    ///
    /// It did not start: see [`SpawnError`], whose message is for the user.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O enabled.
    pub fn spawn(command: impl Into<Command>) -> Result<(Self, ChildStream), SpawnError> {
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
        command: impl Into<Command>,
        stderr: Stderr,
    ) -> Result<(Self, ChildStream), SpawnError> {
        Self::start(&mut command.into(), stderr)
    }

    /// Starts a command, which can be started again.
    pub(crate) fn start(
        command: &mut Command,
        stderr: Stderr,
    ) -> Result<(Self, ChildStream), SpawnError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|source| {
            let command = command.as_std();
            SpawnError::new(command.get_program(), command.get_current_dir(), source)
        })?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(error)) = streams else {
            unreachable!("all three are piped")
        };
        let input = ChildInput::new(stdin);
        let stream = TokioStream::new(stdout, input.clone());
        Ok((Self { child, input, stderr: stderr::Reader::start(error, stderr) }, stream))
    }

    /// The process id, `None` once the child has exited and was waited for.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.id()
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
        let status = self.child.wait().await?;
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
    pub async fn shutdown(mut self, graces: Graces) -> io::Result<ExitReport> {
        self.input.close();
        if let Ok(status) = timeout(graces.end_of_input, self.child.wait()).await {
            return Ok(self.report(status?, false).await);
        }
        #[cfg(unix)]
        {
            self.signal(rustix::process::Signal::TERM);
            if let Ok(status) = timeout(graces.terminate, self.child.wait()).await {
                return Ok(self.report(status?, true).await);
            }
        }
        self.kill();
        let status = self.child.wait().await?;
        Ok(self.report(status, true).await)
    }

    async fn report(&mut self, status: ExitStatus, forced: bool) -> ExitReport {
        self.stderr.settle().await;
        ExitReport::new(status, self.stderr.tail(), forced)
    }

    /// Ends a child that has not exited, and on Unix its group.
    fn kill(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        // It has exited if this fails.
        let _ = self.child.start_kill();
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        // There is an id as long as nobody has waited for the child, so that the system has not
        // given it to another process.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(rustix::process::Pid::from_raw) {
            // It has exited if this fails.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Debug for ChildServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildServer").field("child", &self.child).finish_non_exhaustive()
    }
}
