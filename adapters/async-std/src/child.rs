use std::process;

use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio_async::ByteStream;
use mcp_sansio_async::child::{self, Process};
use mcp_sansio_handlers::{Client, Host};

use crate::runtime::{AsyncRuntime, FuturesStream};
use crate::{Error, SpawnOptions};

pub(crate) type AsyncProcess = mcp_sansio_async::async_io::process::AsyncProcess<AsyncRuntime>;

/// A server that runs as a child process. Its commands are those of the standard library.
pub type ChildServer = child::ChildServer<AsyncProcess>;

/// The standard output and input of a child process, as a [`ByteStream`].
pub type ChildStream = child::ChildStream<<AsyncProcess as Process>::Stream>;

/// A client connected to a server process that it started. Derefs to the [`Client`].
pub type ChildConnection = child::ChildConnection<AsyncProcess>;

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
pub async fn spawn(command: process::Command, host: &Host) -> Result<ChildConnection, Error> {
    child::connect(command, host).await
}

/// Like [`spawn`], with options.
///
/// # Errors
///
/// As [`spawn`].
pub async fn spawn_with(
    command: process::Command,
    host: &Host,
    options: SpawnOptions,
) -> Result<ChildConnection, Error> {
    child::connect_with(command, host, options).await
}

/// Connects to a server over a reader and a writer, such as the halves of a socket: the counterpart
/// of [`serve()`](crate::serve()). A spawned task drives the connection, until it is closed with
/// [`Client::close`] or the last handle and call are dropped.
///
/// # Errors
///
/// [`Error::Closed`]: the connection could not be opened.
pub async fn connect_over<R, W>(reader: R, writer: W, host: &Host) -> Result<Client, Error>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    connect_stream(FuturesStream::new(reader, writer), host).await
}

/// Connects to a server over a stream, such as a [`MessageStream`](crate::MessageStream) or a stream
/// of your own: the counterpart of [`serve_stream`](crate::serve_stream). A spawned task drives the
/// connection, as for [`connect_over`].
///
/// # Errors
///
/// As [`connect_over`].
pub async fn connect_stream(
    stream: impl ByteStream + Send + 'static,
    host: &Host,
) -> Result<Client, Error> {
    child::connect_over::<AsyncRuntime>(stream, host).await
}
