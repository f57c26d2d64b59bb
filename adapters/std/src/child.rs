//! Servers as child processes: the blocking version of those of `mcp_sansio_async`.

use std::io::{self, Read, Write};
use std::ops::Deref;
use std::process::Command;

use mcp_sansio_async::child::{self, ExitReport, GracePeriods, Process, SpawnError};
use mcp_sansio_handlers::{Client, Host, ServerConnection};

use crate::runtime::ThreadRuntime;
use crate::{
    AnyConnection, Error, PipeStream, SpawnOptions, Stderr, ThreadedStream, block_on, seed,
};

pub(crate) type AsyncProcess = mcp_sansio_async::async_io::process::AsyncProcess<ThreadRuntime>;

/// The standard output and input of a child process, as a [`ByteStream`](mcp_sansio_async::ByteStream).
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

    /// Returns the last 32 lines of the child's standard error so far, each of at most 4,096 bytes.
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

// ------------------------------------------------------------------ connect

/// Starts a server as a child process and connects to it. A thread drives the connection. Waits
/// until it is open.
///
/// A server of unknown era is probed first. If it exits on the probe, it is a legacy server: it is
/// started once more and opened without a probe. To avoid the second start, store its
/// [`era`](Client::era) and pass it to [`Host::known_era`] the next time.
///
/// # Errors
///
/// The process could not be started, or the connection could not be opened. The error contains the
/// last lines of the server's standard error.
pub fn spawn(command: Command, host: &Host) -> Result<ChildConnection, Error> {
    block_on(child::connect(command, host)).map(ChildConnection)
}

/// Like [`spawn`], with options.
///
/// # Errors
///
/// As [`spawn`].
pub fn spawn_with(
    command: Command,
    host: &Host,
    options: SpawnOptions,
) -> Result<ChildConnection, Error> {
    block_on(child::connect_with(command, host, options)).map(ChildConnection)
}

/// A client connected to a server process that it started. Derefs to the [`Client`];
/// [`Wait`](crate::Wait) waits for its calls.
///
/// Dropping it kills the server; [`shutdown`](Self::shutdown) ends it gracefully.
#[derive(Debug)]
pub struct ChildConnection(child::ChildConnection<AsyncProcess>);

impl ChildConnection {
    /// Returns the process id of the server, or `None` while it does not run.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.0.id()
    }

    /// Kills the server, and the processes that it started. Calls in flight end with
    /// [`Failure::ConnectionLost`](mcp_sansio::peer::Failure::ConnectionLost). The connection
    /// closes, unless it [starts the server again](SpawnOptions::respawn).
    pub fn kill(&self) {
        self.0.kill();
    }

    /// Returns the last 32 lines of the server's standard error so far, each of at most 4,096
    /// bytes.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.0.stderr_tail()
    }

    /// Closes the connection and the server's input, and terminates the server if it does not exit.
    /// The connection is closed when this returns.
    ///
    /// Calling it in a handler of the connection would deadlock.
    ///
    /// # Errors
    ///
    /// The system has lost the child: other code in this process has already waited for it.
    pub fn shutdown(self) -> Result<ExitReport, Error> {
        block_on(self.0.shutdown())
    }
}

impl Deref for ChildConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl From<ChildConnection> for AnyConnection {
    fn from(connection: ChildConnection) -> Self {
        connection.0.into()
    }
}

impl ServerConnection for ChildConnection {
    fn client(&self) -> &Client {
        self
    }

    fn seed() -> u64 {
        seed()
    }

    fn is_permanent(error: &(dyn std::error::Error + 'static)) -> bool {
        Error::is_permanent_in(error)
    }
}

// ------------------------------------------------------------------ any stream

/// Connects to a server over a reader and a writer, each on its own thread: the
/// counterpart of [`serve()`](crate::serve()). A thread drives the connection, until it is closed
/// with [`Client::close`] or the last handle and call are dropped.
///
/// For sockets use [`connect_stream`], which needs no threads for them.
///
/// # Errors
///
/// [`Error::Closed`]: the connection could not be opened.
pub fn connect_over(
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
    host: &Host,
) -> Result<Client, Error> {
    block_on(child::connect_over::<ThreadRuntime>(ThreadedStream::new(reader, writer), host))
}

/// Connects to a server over a socket, a `TcpStream` or a `UnixStream`: the counterpart of
/// [`serve_stream`](crate::serve_stream). A thread drives the connection, as for [`connect_over`].
///
/// # Errors
///
/// [`Error::Closed`], as [`connect_over`], or [`Error::System`]: the socket cannot be used.
pub fn connect_stream(
    stream: impl TryInto<PipeStream, Error = io::Error>,
    host: &Host,
) -> Result<Client, Error> {
    block_on(child::connect_over::<ThreadRuntime>(stream.try_into()?, host))
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
