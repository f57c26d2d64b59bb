use std::io;
use std::ops::Deref;
use std::sync::Arc;

use mcp_sansio::Backoff;
use mcp_sansio::peer::CloseReason;
use mcp_sansio_handlers::endpoint::Endpoint as _;
use mcp_sansio_handlers::{Client, Host};

use super::observer::ByteObserver;
use super::supervisor::{ChildSlot, drive, supervise};
use super::{
    ChildServer, ExitReport, GracePeriods, OpenOutcome, Process, Stderr, TransferDirection, open,
};
use crate::task::{self, Task};
use crate::timer::timeout;
use crate::{DriveError, Error, Runtime, seed};

/// Options of a connection to a server that is started as a child process.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SpawnOptions {
    respawn: Option<Backoff>,
    grace_periods: GracePeriods,
    observer: ByteObserver,
}

impl SpawnOptions {
    /// The defaults: a server that has ended is not started again.
    #[must_use]
    pub const fn new() -> Self {
        let observer = ByteObserver::NONE;
        Self { respawn: None, grace_periods: GracePeriods::DEFAULT, observer }
    }

    /// Starts the server again when it has ended without being told to, for example because it
    /// crashed or was killed. The connection stays open: calls in flight end with
    /// [`Failure::ConnectionLost`](mcp_sansio::peer::Failure::ConnectionLost), later calls wait for
    /// the new process, and subscriptions and the log level are restored.
    ///
    /// The backoff sets the delay before each start, and how many are tried in a row; a process that
    /// ran for the [`ceiling`](Backoff::ceiling) counts as a success. After the last attempt the
    /// connection closes.
    #[must_use]
    pub const fn respawn(mut self, backoff: Backoff) -> Self {
        self.respawn = Some(backoff);
        self
    }

    /// Sets how long the connection waits for the exit of the server at each step:
    /// [`GracePeriods::DEFAULT`] unless set.
    #[must_use]
    pub const fn grace_periods(mut self, periods: GracePeriods) -> Self {
        self.grace_periods = periods;
        self
    }

    /// Calls a function with all bytes that are read from and written to the server, as they are
    /// transferred: parts of lines, or several. It must return quickly, and it sees secrets.
    #[must_use]
    pub fn observe_bytes(
        mut self,
        observer: impl Fn(TransferDirection, &[u8]) + Send + Sync + 'static,
    ) -> Self {
        self.observer = ByteObserver::new(observer);
        self
    }
}

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
    connect_with(command, host, SpawnOptions::new()).await
}

/// Like [`connect`], with options.
///
/// # Errors
///
/// As [`connect`].
///
/// # Panics
///
/// As [`connect`].
pub async fn connect_with<P: Process>(
    command: impl Into<P::Command>,
    host: &Host,
    options: SpawnOptions,
) -> Result<ChildConnection<P>, Error> {
    let mut command = command.into();
    let runtime = P::Runtime::current();
    let (mut child, stream) = ChildServer::<P>::start(&mut command, Stderr::Keep)?;
    let (client, mut endpoint) = host.connect(seed(), runtime.now());
    endpoint.set_spawner(P::Runtime::spawn_blocking);
    if options.respawn.is_some() {
        endpoint = endpoint.respawning();
    }
    let SpawnOptions { respawn, grace_periods, observer } = options;
    let mut driver = drive(&runtime, endpoint, observer.watch(stream));
    loop {
        match open(&client, &mut driver).await {
            OpenOutcome::Open => {
                let slot = Arc::new(ChildSlot::new(child, grace_periods, observer));
                let supervised =
                    supervise(Arc::clone(&slot), command, driver, respawn, runtime.clone());
                let driver = task::spawn(&runtime, supervised);
                return Ok(ChildConnection { client, slot, driver });
            }
            OpenOutcome::WantsStream => {
                let (endpoint, stream, _) = driver.into_parts();
                // Two instances could interfere with each other. The exit status of the first is
                // not used.
                drop(stream);
                let _ended = child.shutdown(grace_periods).await;
                let stream;
                (child, stream) = ChildServer::start(&mut command, Stderr::Keep)?;
                driver = drive(&runtime, endpoint, observer.watch(stream));
            }
            OpenOutcome::Closed(reason) => {
                let _driving = task::spawn(&runtime, driver);
                // A child that exited has explained why on its standard error; one still running is
                // killed.
                let limit = grace_periods.terminate;
                let report = timeout(&runtime, limit, child.wait()).await.and_then(Result::ok);
                let stderr_tail = child.stderr_tail();
                let exited = report.filter(|_| matches!(reason, CloseReason::EndOfInput));
                let status = exited.map(|report| report.status);
                let reason = Box::new(reason);
                return Err(Error::Closed { reason, status, stderr_tail });
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
    slot: Arc<ChildSlot<P>>,
    driver: Task<Result<(), DriveError>>,
}

impl<P: Process> ChildConnection<P> {
    /// Returns the process id of the server, or `None` while it does not run.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.slot.with(|child| child.id()).flatten()
    }

    /// Kills the server, and the processes that it started. Calls in flight end with
    /// [`Failure::ConnectionLost`](mcp_sansio::peer::Failure::ConnectionLost). The connection closes,
    /// unless it [starts the server again](SpawnOptions::respawn).
    pub fn kill(&self) {
        self.slot.with(ChildServer::kill);
    }

    /// Returns the last lines of the server's standard error so far.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.slot.stderr_tail()
    }

    /// Closes the connection and the server's input, and terminates the server if it does not exit.
    /// It is not started again.
    ///
    /// # Errors
    ///
    /// The system has lost the child: other code in this process has already waited for it.
    pub async fn shutdown(mut self) -> Result<ExitReport, Error> {
        self.client.close();
        if let Some(child) = self.slot.close() {
            let report = child.shutdown(self.slot.grace_periods()).await?;
            self.driver.abort();
            return Ok(report);
        }
        // The server has ended, and was not started again yet.
        let _ended = (&mut self.driver).await;
        let lost = || io::Error::other("the system has lost the child process");
        Ok(self.slot.last_report().ok_or_else(lost)?)
    }
}

impl<P: Process> Drop for ChildConnection<P> {
    fn drop(&mut self) {
        if self.slot.close().is_none() {
            // It waits for another process.
            self.client.close();
        }
    }
}

impl<P: Process> Deref for ChildConnection<P> {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
