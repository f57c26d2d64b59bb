use std::ops::Deref;

use mcp_sansio_handlers::endpoint::Endpoint as _;
use mcp_sansio_handlers::{Client, Host};

use super::{ChildServer, ExitReport, GracePeriods, OpenOutcome, Process, Stderr, open};
use crate::task::{self, Task};
use crate::timer::timeout;
use crate::{DriveError, Driver, Error, Runtime, StreamSettings, seed};

/// Starts a server as a child process and connects to it. A spawned task drives the connection.
///
/// A server of unknown era is probed first. If it exits on the probe, it is a legacy server: it is
/// started once more and opened without a probe. To avoid the second start, store its
/// [`era`](Client::era) and pass it to [`Host::known_era`] the next time.
///
/// # Errors
///
/// The process could not be started, or the connection could not be opened. The error contains the
/// last lines of the server's standard error.
///
/// # Panics
///
/// Where [`Runtime::current`] does.
pub async fn connect<P: Process>(
    command: impl Into<P::Command>,
    host: &Host,
) -> Result<ChildConnection<P>, Error> {
    let mut command = command.into();
    let runtime = P::Runtime::current();
    let (mut child, stream) = ChildServer::<P>::start(&mut command, Stderr::Keep)?;
    let (client, mut endpoint) = host.connect(seed(), runtime.now());
    endpoint.set_spawner(P::Runtime::spawn_blocking);
    let drive = |endpoint, stream| {
        Driver::with_settings(endpoint, stream, runtime.timer(), StreamSettings::pipe())
            .restarting()
    };
    let mut driver = drive(endpoint, stream);
    loop {
        match open(&client, &mut driver).await {
            OpenOutcome::Open => {
                return Ok(ChildConnection {
                    client,
                    child,
                    driver: task::spawn(&runtime, driver),
                });
            }
            OpenOutcome::WantsStream => {
                let (endpoint, stream, _) = driver.into_parts();
                // Two instances could interfere with each other. The exit status of the first is
                // not used.
                drop(stream);
                let _ended = child.shutdown(GracePeriods::default()).await;
                let stream;
                (child, stream) = ChildServer::start(&mut command, Stderr::Keep)?;
                driver = drive(endpoint, stream);
            }
            OpenOutcome::Closed(reason) => {
                let _driving = task::spawn(&runtime, driver);
                // A child that exited has explained why on its standard error; one still running is
                // killed.
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

/// A client connected to a server process that it started. Derefs to the [`Client`].
///
/// Dropping it kills the server; [`shutdown`](Self::shutdown) ends it gracefully.
#[derive(Debug)]
pub struct ChildConnection<P: Process> {
    client: Client,
    child: ChildServer<P>,
    driver: Task<Result<(), DriveError>>,
}

impl<P: Process> ChildConnection<P> {
    /// Returns the last lines of the server's standard error so far.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.child.stderr_tail()
    }

    /// Closes the connection and the server's input, and terminates the server if it does not exit.
    ///
    /// # Errors
    ///
    /// The system has lost the child: other code in this process has already waited for it.
    pub async fn shutdown(self) -> Result<ExitReport, Error> {
        let Self { client, child, driver } = self;
        client.close();
        let report = child.shutdown(GracePeriods::default()).await?;
        driver.abort();
        Ok(report)
    }
}

impl<P: Process> Deref for ChildConnection<P> {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
