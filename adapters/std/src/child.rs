//! Servers as child processes: the blocking version of those of `mcp_sansio_async`.

use std::io;
use std::process::Command;

use mcp_sansio_async::child::{self, ExitReport, GracePeriods, Process, SpawnError, Stderr};

use crate::block_on;
use crate::runtime::AsyncProcess;

/// The standard output and input of a child process, as a [`ByteStream`](crate::ByteStream).
pub type ChildStream = child::ChildStream<<AsyncProcess as Process>::Stream>;

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
pub struct ChildServer(child::ChildServer<AsyncProcess>);

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
        block_on(self.0.wait())
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
        block_on(self.0.shutdown(grace_periods))
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
