use std::process;

use mcp_sansio_async::child::{self, Process};
use mcp_sansio_handlers::Host;

use crate::runtime::AsyncRuntime;
use crate::{Error, SpawnOptions};

pub(crate) type AsyncProcess = mcp_sansio_async::async_io::process::AsyncProcess<AsyncRuntime>;

/// A server that runs as a child process. Its commands are those of the standard library.
pub type ChildServer = child::ChildServer<AsyncProcess>;

/// The standard output and input of a child process, as a [`ByteStream`](mcp_sansio_async::ByteStream).
pub type ChildStream = child::ChildStream<<AsyncProcess as Process>::Stream>;

/// A client connected to a server process that it started. Derefs to the [`Client`](crate::Client).
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
