//! Servers as child processes: the blocking version of those of `mcp_sansio_async`.

use std::io::{self, Read, Write};
use std::process::Command;

use mcp_sansio_async::child::{self, Process};
use mcp_sansio_handlers::{Client, Host};

use crate::runtime::ThreadRuntime;
use crate::{Error, PipeStream, SpawnOptions, ThreadedStream, block_on};

pub(crate) type AsyncProcess = mcp_sansio_async::async_io::process::AsyncProcess<ThreadRuntime>;

/// The standard output and input of a child process, as a [`ByteStream`](mcp_sansio_async::ByteStream).
pub type ChildStream = child::ChildStream<<AsyncProcess as Process>::Stream>;

/// A server that runs as a child process. [`block_on`] waits for its exit.
pub type ChildServer = child::ChildServer<AsyncProcess>;

/// A client connected to a server process that it started. Derefs to the [`Client`];
/// [`Wait`](crate::Wait) waits for its calls, and for its [`shutdown`](child::ChildConnection::shutdown).
pub type ChildConnection = child::ChildConnection<AsyncProcess>;

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
    block_on(child::connect(command, host))
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
    block_on(child::connect_with(command, host, options))
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
