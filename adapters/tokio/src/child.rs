use std::io;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll, ready};

use mcp_sansio_async::ByteStream;
use mcp_sansio_async::child::{self, Process, SpawnError};
use mcp_sansio_handlers::{Client, Host};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::runtime::TokioRuntime;
use crate::{Error, SpawnOptions, TokioStream};

/// A server that runs as a child process. Its commands are those of tokio and of the standard
/// library.
pub type ChildServer = child::ChildServer<TokioProcess>;

/// The standard output and input of a child process, as a [`ByteStream`].
pub type ChildStream = child::ChildStream<TokioStream<ChildStdout, ChildStdin>>;

/// A client connected to a server process that it started. Derefs to the [`Client`].
pub type ChildConnection = child::ChildConnection<TokioProcess>;

/// Starts a server as a child process and connects to it. A spawned task drives the connection.
///
/// A server of unknown era is probed first. If it exits on the probe, it is a legacy server: it is
/// started once more and opened without a probe. To avoid the second start, store its
/// [`era`](crate::Client::era) and pass it to [`Host::known_era`] the next time.
///
/// # Errors
///
/// The process could not be started, or the connection could not be opened. The error contains the
/// last lines of the server's standard error.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
pub async fn spawn(command: impl Into<Command>, host: &Host) -> Result<ChildConnection, Error> {
    child::connect(command, host).await
}

/// Like [`spawn`], with options.
///
/// ```no_run
/// use mcp_sansio_tokio::machine::Backoff;
/// use mcp_sansio_tokio::{self as mcp, Host, SpawnOptions};
/// use tokio::process::Command;
///
/// # async fn run(host: Host) -> Result<(), mcp::Error> {
/// let options = SpawnOptions::new().respawn(Backoff::DEFAULT);
/// let client = mcp::spawn_with(Command::new("weather-server"), &host, options).await?;
/// # drop(client); Ok(()) }
/// ```
///
/// # Errors
///
/// As [`spawn`].
///
/// # Panics
///
/// As [`spawn`].
pub async fn spawn_with(
    command: impl Into<Command>,
    host: &Host,
    options: SpawnOptions,
) -> Result<ChildConnection, Error> {
    child::connect_with(command, host, options).await
}

/// Connects to a server over a reader and a writer, such as the halves of a socket: the counterpart
/// of [`serve()`](crate::serve()). A spawned task drives the connection, until it is closed with
/// [`Client::close`] or the last handle and call are dropped.
///
/// ```no_run
/// use mcp_sansio_tokio::{self as mcp, Host};
///
/// # async fn run(host: Host) -> Result<(), mcp::Error> {
/// let (reader, writer) = tokio::net::TcpStream::connect("127.0.0.1:7000").await?.into_split();
/// let client = mcp::connect_over(reader, writer, &host).await?;
/// # drop(client); Ok(()) }
/// ```
///
/// # Errors
///
/// [`Error::Closed`]: the connection could not be opened.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
pub async fn connect_over<R, W>(reader: R, writer: W, host: &Host) -> Result<Client, Error>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    connect_stream(TokioStream::new(reader, writer), host).await
}

/// Connects to a server over a stream, such as a [`MessageStream`](crate::MessageStream) or a stream
/// of your own: the counterpart of [`serve_stream`](crate::serve_stream). A spawned task drives the
/// connection, as for [`connect_over`].
///
/// # Errors
///
/// As [`connect_over`].
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
pub async fn connect_stream(
    stream: impl ByteStream + Send + 'static,
    host: &Host,
) -> Result<Client, Error> {
    child::connect_over::<TokioRuntime>(stream, host).await
}

/// A child process managed by tokio.
#[derive(Debug)]
pub struct TokioProcess(Child);

impl Process for TokioProcess {
    type Runtime = TokioRuntime;
    type Command = Command;
    type Stream = TokioStream<ChildStdout, ChildStdin>;
    type Stderr = ChildStderr;

    fn start(command: &mut Command) -> Result<(Self, Self::Stream, Self::Stderr), SpawnError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|source| {
            let command = command.as_std();
            SpawnError::new(command.get_program(), command.get_current_dir(), source)
        })?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            unreachable!("all three are piped")
        };
        Ok((Self(child), TokioStream::new(stdout, stdin), stderr))
    }

    fn id(&self) -> Option<u32> {
        self.0.id()
    }

    #[cfg(windows)]
    fn raw_handle(&self) -> Option<std::os::windows::io::RawHandle> {
        self.0.raw_handle()
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }

    fn kill(&mut self) {
        // A failure means that it has exited.
        let _ = self.0.start_kill();
    }

    fn poll_stderr(
        stderr: &mut ChildStderr,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(stderr).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    async fn forward(text: String) {
        // If the standard error of this process is closed, the text is lost.
        let _ = tokio::io::stderr().write_all(text.as_bytes()).await;
    }
}
