use std::ops::Deref;
use std::process::Command;

use mcp_sansio::handler::{Client, Host};
use mcp_sansio_async::Settings;

use crate::{Background, ChildServer, Error, ExitReport, Wait, now, seed};

/// Starts a server as a child process and opens a connection to it, driven on a thread of its own.
/// Waits until it is open.
///
/// # Errors
///
/// The process could not be started, or the connection not be opened; the error has the last lines
/// of the server's standard error.
pub fn spawn(command: Command, host: &Host) -> Result<Connection, Error> {
    let (child, stream) = ChildServer::spawn(command)?;
    let (client, endpoint) = host.connect(seed(), now());
    let background = Background::with_settings(endpoint, stream, Settings::pipe())?;
    if let Err(reason) = client.opened().wait() {
        client.close();
        // How the connection ended is known; the stream is free for the child to see its end.
        let _ended = background.join();
        let stderr_tail = child.shutdown().map(|report| report.stderr_tail).unwrap_or_default();
        return Err(Error::Closed { reason: Box::new(reason), stderr_tail });
    }
    Ok(Connection { client, background, child })
}

/// A client with the server that it started. It derefs to the [`Client`]; [`Wait`] waits for its
/// calls.
///
/// Dropped, it kills the server; [`shutdown`](Self::shutdown) ends it in good order.
#[derive(Debug)]
pub struct Connection {
    client: Client,
    background: Background,
    child: ChildServer,
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
    pub fn shutdown(self) -> Result<ExitReport, Error> {
        let Self { client, background, child } = self;
        client.close();
        // A stream that broke is one that has ended.
        let _ended = background.join();
        Ok(child.shutdown()?)
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
