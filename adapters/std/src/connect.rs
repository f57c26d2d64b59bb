use std::ops::Deref;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_sansio_async::Settings;
use mcp_sansio_handlers::{Client, Host};

use crate::{
    Background, ChildOptions, ChildServer, ChildStream, Error, ExitReport, SpawnError, Wait, now,
    seed,
};

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
pub fn spawn(mut command: Command, host: &Host) -> Result<Connection, Error> {
    let (child, stream) = ChildServer::start(&mut command, ChildOptions::default())?;
    let child = Arc::new(Mutex::new(Some(Ok(child))));
    let (client, endpoint) = host.connect(seed(), now());
    let started = Arc::clone(&child);
    let again = move |stream: ChildStream| {
        // Two at once could be in each other's way. How this one ends matters to nobody.
        drop(stream);
        if let Some(Ok(child)) = take(&started) {
            let _ended = child.shutdown();
        }
        let (child, stream) = match ChildServer::start(&mut command, ChildOptions::default()) {
            Ok((child, stream)) => (Ok(child), Some(stream)),
            Err(error) => (Err(error), None),
        };
        *started.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        stream
    };
    let background = Background::restarting(endpoint, stream, Settings::pipe(), again)?;
    let opened = client.opened().wait();
    // It is not started again from here on.
    let child = take(&child).unwrap_or_else(|| unreachable!("the thread has put it back"))?;
    if let Err(reason) = opened {
        client.close();
        // How the connection ended is known; the stream is free for the child to see its end.
        let _ended = background.join();
        let stderr_tail = child.shutdown().map(|report| report.stderr_tail).unwrap_or_default();
        return Err(Error::Closed { reason: Box::new(reason), stderr_tail });
    }
    Ok(Connection { client, background, child })
}

/// The child that was started last, or why it was not.
type Started = Mutex<Option<Result<ChildServer, SpawnError>>>;

fn take(started: &Started) -> Option<Result<ChildServer, SpawnError>> {
    started.lock().unwrap_or_else(PoisonError::into_inner).take()
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
