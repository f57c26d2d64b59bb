use std::ops::Deref;
use std::process::Command;

use mcp_sansio_async::child::{self, ExitReport};
use mcp_sansio_handlers::{Client, Host};

use crate::child::StdProcess;
use crate::{Error, block_on};

/// Starts a server as a child process and opens a connection to it, driven on a thread of its own.
/// Waits until it is open.
///
/// A server whose era is not known is probed first. One that exits on that is a legacy server: it is
/// started again, once, and opened without a probe. Remember its [`era`](Client::era) and give it to
/// [`Host::known_era`] the next time, and it is started once.
///
/// # Errors
///
/// The process could not be started, or the connection not be opened; the error has the last lines
/// of the server's standard error.
pub fn spawn(command: Command, host: &Host) -> Result<Connection, Error> {
    Ok(Connection(block_on(child::connect(command, host))??))
}

/// A client with the server that it started. It derefs to the [`Client`]; [`Wait`](crate::Wait)
/// waits for its calls.
///
/// Dropped, it kills the server; [`shutdown`](Self::shutdown) ends it in good order.
#[derive(Debug)]
pub struct Connection(child::Connection<StdProcess>);

impl Connection {
    /// The last lines of the server's standard error so far.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.0.stderr_tail()
    }

    /// Closes the connection and ends the server: by the end of its input, and by force if that
    /// does not do.
    ///
    /// # Errors
    ///
    /// The system has lost the child: something else in this process has waited for it.
    pub fn shutdown(self) -> Result<ExitReport, Error> {
        block_on(self.0.shutdown())?
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}
