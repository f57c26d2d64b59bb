use std::ops::Deref;

use mcp_sansio_handlers::{Client, Host};

use super::{ChildServer, ExitReport, GracePeriods, OpenOutcome, Process, Stderr, open};
use crate::task::{self, Task};
use crate::timer::timeout;
use crate::{DriveError, Driver, Error, Runtime, Settings, seed};

/// Starts a server as a child process and opens a connection to it, driven by a task of its own.
///
/// A server whose era is not known is probed first. One that exits on that is a legacy server: it is
/// started again, once, and opened without a probe. Remember its [`era`](Client::era) and give it to
/// [`Host::known_era`] the next time, and it is started once.
///
/// # Errors
///
/// The process could not be started, or the connection not be opened; the error has the last lines
/// of the server's standard error.
///
/// # Panics
///
/// Where [`Runtime::current`] does.
pub async fn connect<P: Process>(
    command: impl Into<P::Command>,
    host: &Host,
) -> Result<Connection<P>, Error> {
    let mut command = command.into();
    let runtime = P::Runtime::current();
    let (mut child, stream) = ChildServer::<P>::start(&mut command, Stderr::Keep)?;
    let (client, endpoint) = host.connect(seed(), runtime.now());
    let drive = |endpoint, stream| {
        Driver::with_settings(endpoint, stream, runtime.timer(), Settings::pipe()).restarting()
    };
    let mut driver = drive(endpoint, stream);
    loop {
        match open(&client, &mut driver).await {
            OpenOutcome::Open => {
                return Ok(Connection { client, child, driver: task::spawn(&runtime, driver) });
            }
            OpenOutcome::WantsStream => {
                let (endpoint, stream, _) = driver.into_parts();
                // Two at once could be in each other's way. How this one ends matters to nobody.
                drop(stream);
                let _ended = child.shutdown(GracePeriods::default()).await;
                let stream;
                (child, stream) = ChildServer::start(&mut command, Stderr::Keep)?;
                driver = drive(endpoint, stream);
            }
            OpenOutcome::Closed(reason) => {
                let _driving = task::spawn(&runtime, driver);
                // A child that died has said why; one that lives is ended.
                let grace_periods = GracePeriods::default();
                let stderr_tail =
                    match timeout(&runtime, grace_periods.terminate, child.wait()).await {
                        Some(Ok(report)) => report.stderr_tail,
                        _ => child.stderr_tail(),
                    };
                return Err(Error::Closed { reason: Box::new(reason), stderr_tail });
            }
        }
    }
}

/// A client with the server that it started. It derefs to the [`Client`].
///
/// Dropped, it kills the server; [`shutdown`](Self::shutdown) ends it in good order.
#[derive(Debug)]
pub struct Connection<P: Process> {
    client: Client,
    child: ChildServer<P>,
    driver: Task<Result<(), DriveError>>,
}

impl<P: Process> Connection<P> {
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
        let Self { client, child, driver } = self;
        client.close();
        let report = child.shutdown(GracePeriods::default()).await?;
        driver.abort();
        Ok(report)
    }
}

impl<P: Process> Deref for Connection<P> {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
