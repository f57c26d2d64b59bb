use std::ops::Deref;
use std::process::Command;

use mcp_sansio_async::child::{self, ExitReport, SpawnOptions};
use mcp_sansio_handlers::{Client, Host};

use crate::runtime::AsyncProcess;
use crate::{Error, block_on};

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
    /// [`Failure::ConnectionLost`](mcp_sansio::peer::Failure::ConnectionLost). The connection closes,
    /// unless it [starts the server again](SpawnOptions::respawn).
    pub fn kill(&self) {
        self.0.kill();
    }

    /// Returns the last lines of the server's standard error so far.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.0.stderr_tail()
    }

    /// Closes the connection and the server's input, and terminates the server if it does not exit.
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
