//! Servers as child processes: the blocking version of those of `mcp_sansio_async`.

use std::future::poll_fn;
use std::io::{self, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::task::{Context, Poll};
use std::time::Duration;

#[cfg(unix)]
use mcp_sansio_async::child::wait_unreaped;
use mcp_sansio_async::child::{
    self, ExitReport, GracePeriods, Process, SpawnError, Started, Stderr,
};
use mcp_sansio_async::{ByteStream, Timer as _};

use crate::runtime::ThreadRuntime;
use crate::{Clock, PipeStream, block_on, now};

/// The standard output and input of a child process, as a [`ByteStream`].
pub type ChildStream = child::ChildStream<PipeStream>;

/// A server that runs as a child process.
///
/// Drive the stream returned with it. When the connection is over, end the child with
/// [`shutdown`](Self::shutdown). Dropping this value kills the child.
///
/// The exit of the child ends the connection, even if a process that it started holds the pipe.
///
/// On Unix the child leads its own process group, and signals are sent to the whole group:
/// processes that a launcher has started end with it, even if the launcher has ended before them.
/// Ctrl-C at a terminal does not reach the child; it reads the end of its input instead. On Windows
/// the child and the processes that it started are a job object.
#[derive(Debug)]
pub struct ChildServer(child::ChildServer<StdProcess>);

impl ChildServer {
    /// Starts a command and keeps the last lines of its standard error.
    ///
    /// # Errors
    ///
    /// The process did not start: see [`SpawnError`].
    pub fn spawn(command: Command) -> Result<(Self, ChildStream), SpawnError> {
        Self::spawn_with(command, Stderr::Keep)
    }

    /// Like [`spawn`](Self::spawn), with the given handling of standard error.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    pub fn spawn_with(command: Command, stderr: Stderr) -> Result<(Self, ChildStream), SpawnError> {
        let (child, stream) = child::ChildServer::spawn_with(command, stderr)?;
        Ok((Self(child), stream))
    }

    /// Returns the process id, or `None` once the child has exited and been waited for.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.0.id()
    }

    /// Returns the last lines of the child's standard error so far.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.0.stderr_tail()
    }

    /// Kills the child, and the processes that it started.
    pub fn kill(&mut self) {
        self.0.kill();
    }

    /// Blocks until the child exits.
    ///
    /// # Errors
    ///
    /// The system has lost the child, or is out of descriptors.
    pub fn wait(&mut self) -> io::Result<ExitReport> {
        block_on(self.0.wait())?
    }

    /// Ends the child: closes its input, waits, then terminates it, gracefully at first.
    ///
    /// Keep driving its stream meanwhile, or drop it: the child does not exit while it is blocked
    /// on writing its output.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn shutdown(self, grace_periods: GracePeriods) -> io::Result<ExitReport> {
        block_on(self.0.shutdown(grace_periods))?
    }
}

/// A child process of the standard library. Dropping it kills and reaps the process.
#[derive(Debug)]
pub(crate) struct StdProcess(Child);

/// Pauses between checks for an exit, since the standard library has no timed wait: half a
/// millisecond at first, then longer, down to sixty checks a second.
const FIRST_PAUSE: Duration = Duration::from_micros(500);
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

impl StdProcess {
    fn open(command: &mut Command) -> io::Result<Started<Self>> {
        let mut process = Self(command.spawn()?);
        let child = &mut process.0;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            unreachable!("all three are piped")
        };
        let stream = PipeStream::child(stdout, stdin)?;
        Ok(Started::new(process, stream, PipeStream::child_stderr(stderr)?))
    }
}

impl Process for StdProcess {
    type Runtime = ThreadRuntime;
    type Command = Command;
    type Stream = PipeStream;
    type Stderr = PipeStream;

    fn start(command: &mut Command) -> Result<Started<Self>, SpawnError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        Self::open(command).map_err(|error| {
            SpawnError::new(command.get_program(), command.get_current_dir(), error)
        })
    }

    fn id(&self) -> Option<u32> {
        Some(self.0.id())
    }

    #[cfg(windows)]
    fn raw_handle(&self) -> Option<std::os::windows::io::RawHandle> {
        Some(std::os::windows::io::AsRawHandle::as_raw_handle(&self.0))
    }

    /// Blocks, on a thread that does nothing else.
    #[cfg(unix)]
    async fn exited(&mut self) -> io::Result<()> {
        if !wait_unreaped(self.0.id())? {
            self.wait().await?;
        }
        Ok(())
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let (mut clock, mut pause) = (Clock::new(), FIRST_PAUSE);
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            let end = now() + pause;
            poll_fn(|cx| clock.poll_until(cx, end)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn kill(&mut self) {
        // A failure means that it has exited.
        let _ = self.0.kill();
    }

    fn poll_stderr(
        stderr: &mut PipeStream,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        stderr.poll_read(cx, buffer)
    }

    /// Blocks, on a thread that does nothing else.
    async fn forward(text: String) {
        // If the standard error of this process is closed, the text is lost.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

impl Drop for StdProcess {
    fn drop(&mut self) {
        self.kill();
        // Reaps the process, to leave no zombie.
        let _ = self.0.wait();
    }
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
