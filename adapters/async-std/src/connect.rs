use std::ops::Deref;
use std::process::Command;

use mcp_sansio::handler::{Client, Host};

use crate::task::{Executor, Task};
use crate::timer::timeout;
use crate::{ChildServer, DriveError, Error, ExitReport, Graces, Settings, drive_with, now, seed};

/// Starts a server as a child process and opens a connection to it, driven by a task of its own.
///
/// # Errors
///
/// The process could not be started, or the connection not be opened; the error has the last lines
/// of the server's standard error.
pub async fn spawn(command: Command, host: &Host) -> Result<Connection, Error> {
    let (mut child, stream) = ChildServer::spawn(command)?;
    let (client, endpoint) = host.connect(seed(), now());
    let driver = Executor::current().spawn(drive_with(endpoint, stream, Settings::pipe()));
    if let Err(reason) = client.opened().await {
        // A child that died has said why; one that lives is ended.
        let graces = Graces::default();
        let stderr_tail = match timeout(graces.terminate, child.wait()).await {
            Some(Ok(report)) => report.stderr_tail,
            _ => child.stderr_tail(),
        };
        return Err(Error::Closed { reason: Box::new(reason), stderr_tail });
    }
    Ok(Connection { client, child, driver })
}

/// A client with the server that it started. It derefs to the [`Client`].
///
/// Dropped, it kills the server; [`shutdown`](Self::shutdown) ends it in good order.
#[derive(Debug)]
pub struct Connection {
    client: Client,
    child: ChildServer,
    driver: Task<Result<(), DriveError>>,
}

impl Connection {
    /// The last lines of the server's standard error so far.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.child.stderr_tail()
    }

    /// Closes the connection and ends the server: by the end of its input, and by force if that
    /// does not do.
    ///
    /// # Errors
    ///
    /// The system has lost the child: something else in this process has waited for it.
    pub async fn shutdown(self) -> Result<ExitReport, Error> {
        let Self { client, child, mut driver } = self;
        client.close();
        let report = child.shutdown(Graces::default()).await?;
        driver.abort();
        Ok(report)
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
