//! A server as a child process: it is started, listened to, and ended.

mod exit;
mod stderr;
mod stream;
mod tail;

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

pub use exit::{ExitReport, Force};
pub use mcp_sansio_async::child::SpawnError;
pub use stderr::Stderr;
use stderr::StderrThread;
pub use stream::ChildStream;

use crate::stop::Stop;

/// How a child is treated. Each default has its reason.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChildOptions {
    /// Where its standard error goes. [`Stderr::Captured`]: a library does not write to the
    /// terminal of a program that has not asked for it.
    pub stderr: Stderr,
    /// How many of the last lines of the standard error are kept, each of 4 KiB at most. 50: what a
    /// crash prints, and 200 KiB at the very most.
    pub stderr_lines_max: usize,
    /// How long a child may take to exit once its standard input is closed, before it is told to
    /// with SIGTERM. 2 s: what servers are asked to keep to.
    pub patience: Duration,
    /// How long it may take to exit after SIGTERM, before SIGKILL. 2 s: time to write something
    /// down, and nobody likes to wait longer for a program to quit.
    pub term_patience: Duration,
}

impl Default for ChildOptions {
    fn default() -> Self {
        Self {
            stderr: Stderr::Captured,
            stderr_lines_max: 50,
            patience: Duration::from_secs(2),
            term_patience: Duration::from_secs(2),
        }
    }
}

/// A server that runs as a child process.
///
/// To end it, call [`shutdown`](Self::shutdown). Dropped without, it is killed. Either way neither
/// its process nor a thread is left behind. On Unix it leads a process group of its own, which
/// signals go to: what it has started ends with it where it has to be forced. A Ctrl-C at the
/// terminal does not reach it, it reads the end of its input instead.
#[derive(Debug)]
pub struct ChildServer {
    child: Child,
    /// Ends the stream.
    stop: Stop,
    stderr: StderrThread,
    patience: Duration,
    term_patience: Duration,
}

impl ChildServer {
    /// Starts a server as a child process and returns it with the stream to talk to it.
    ///
    /// # Errors
    ///
    /// It did not start: see [`SpawnError`].
    pub fn spawn(command: Command) -> Result<(Self, ChildStream), SpawnError> {
        Self::spawn_with(command, ChildOptions::default())
    }

    /// As [`spawn`](Self::spawn), with options of the caller's.
    ///
    /// # Errors
    ///
    /// It did not start: see [`SpawnError`].
    // MCP 2026-07-28 basic/transports/stdio#stdio [STDIO-007]: the client launches the server and talks
    // over its standard streams.
    pub fn spawn_with(
        mut command: Command,
        options: ChildOptions,
    ) -> Result<(Self, ChildStream), SpawnError> {
        Self::start(&mut command, options)
    }

    /// Starts a command, which can be started again.
    pub(crate) fn start(
        command: &mut Command,
        options: ChildOptions,
    ) -> Result<(Self, ChildStream), SpawnError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Launchers such as package runners do not pass on all signals, so that these go to the group.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let mut child = command.spawn().map_err(|error| failed(command, error))?;
        // All three are there, as they are pipes.
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            kill(&mut child);
            return Err(failed(command, io::ErrorKind::BrokenPipe.into()));
        };
        let ChildOptions { stderr: destination, stderr_lines_max, patience, term_patience } =
            options;
        let parts = ChildStream::new(stdout, stdin).and_then(|stream| {
            Ok((stream, StderrThread::spawn(stderr, destination, stderr_lines_max)?))
        });
        match parts {
            Ok((stream, stderr)) => {
                let stop = stream.stop();
                Ok((Self { child, stop, stderr, patience, term_patience }, stream))
            }
            Err(error) => {
                kill(&mut child);
                Err(failed(command, error))
            }
        }
    }

    /// The id that the system has given the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The last lines that the child has written to its standard error so far, without line ends.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.stderr.tail()
    }

    /// Whether the child has exited by itself, and with what: its status, when it has.
    ///
    /// # Errors
    ///
    /// The system does not say.
    pub fn try_status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Ends the child: closes its standard input, waits, and makes it exit if it does not by
    /// itself, with SIGTERM after [`ChildOptions::patience`], with SIGKILL after
    /// [`ChildOptions::term_patience`] more. Where there are no signals, it is terminated after the
    /// former. A child that has exited already is only reported.
    ///
    /// The standard input belongs to the [`ChildStream`]. If that is being driven, the connection
    /// ends there; if it is not, drop it first, or the child has to learn of its end by force.
    ///
    /// # Errors
    ///
    /// The system does not let this process wait for its child, or end it.
    // MCP 2025-11-25 basic/lifecycle#shutdown [STDIO-015]: close its input, wait, SIGTERM, SIGKILL.
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-016]: likewise.
    pub fn shutdown(mut self) -> io::Result<ExitReport> {
        self.stop.stop();
        if let Some(status) = self.wait_for(self.patience)? {
            return Ok(self.report(status, None));
        }
        if self.terminate()?
            && let Some(status) = self.wait_for(self.term_patience)?
        {
            return Ok(self.report(status, Some(Force::Terminated)));
        }
        kill(&mut self.child);
        // It is waited for already, this only repeats the status.
        let status = self.child.wait()?;
        Ok(self.report(status, Some(Force::Killed)))
    }

    /// Waits for the child to exit, for as long as `patience` lasts.
    ///
    /// The standard library cannot wait for a limited time, so this asks again and again: after
    /// half a millisecond first, then less and less often up to sixty times a second. Nearly
    /// always the end of the standard error cuts the pause short, as it comes with the exit.
    fn wait_for(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        const FIRST: Duration = Duration::from_micros(500);
        const LONGEST: Duration = Duration::from_millis(16);
        let end = crate::now() + patience;
        let mut pause = FIRST;
        let mut heard_end = false;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            let left = end.saturating_since(crate::now());
            if left.is_zero() {
                return Ok(None);
            }
            if heard_end {
                std::thread::sleep(pause.min(left));
            } else {
                heard_end = self.stderr.wait(pause.min(left));
                if heard_end {
                    pause = FIRST;
                    continue;
                }
            }
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// Asks the child to exit. Whether there is a way to.
    #[cfg(unix)]
    fn terminate(&self) -> io::Result<bool> {
        use rustix::io::Errno;
        use rustix::process::{Pid, Signal, kill_process_group};
        // It has not been waited for, so the id is still its own.
        match kill_process_group(Pid::from_child(&self.child), Signal::TERM) {
            Ok(()) | Err(Errno::SRCH) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as where there are signals")]
    const fn terminate(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn report(&mut self, status: ExitStatus, forced: Option<Force>) -> ExitReport {
        self.stderr.finish();
        ExitReport { status, stderr_tail: self.stderr.tail(), forced }
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            kill(&mut self.child);
        }
        self.stop.stop();
    }
}

/// Ends a child, which has not been waited for, for good, and takes its status away, so that no
/// zombie is left.
fn kill(child: &mut Child) {
    // Errors mean that it has ended.
    #[cfg(unix)]
    let _ = rustix::process::kill_process_group(
        rustix::process::Pid::from_child(child),
        rustix::process::Signal::KILL,
    );
    let _ = child.kill();
    let _ = child.wait();
}

fn failed(command: &Command, error: io::Error) -> SpawnError {
    SpawnError::new(command.get_program(), command.get_current_dir(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_program_and_says_what_to_do() {
        // Rule: [STDIO-007].
        let error = ChildServer::spawn(Command::new("no-such-server")).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::NotFound, "{error:?}");
        let text = error.to_string();
        assert!(text.contains("`no-such-server`") && text.contains("install it"), "{text}");

        let error = ChildServer::spawn(Command::new(env!("CARGO_MANIFEST_DIR"))).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::PermissionDenied, "{error:?}");

        let mut command = Command::new("true");
        command.current_dir("/no/such/folder");
        let error = ChildServer::spawn(command).unwrap_err();
        assert!(error.to_string().contains("`/no/such/folder`"), "{error}");
    }
}
