use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::{fmt, io};

use mcp_sansio::peer::{CloseReason, Direction};
use mcp_sansio::{Attempts, Backoff, Spawner};
use mcp_sansio_handlers::endpoint::{ClientEndpoint, Endpoint as _};
use mcp_sansio_handlers::{Client, Host};

use super::{
    ChildServer, ChildStream, ExitReport, GracePeriods, OpenOutcome, Process, Stderr, StderrTail,
    open,
};
use crate::error::Error;
use crate::runtime::timeout;
use crate::task::Task;
use crate::{ByteStream, DriveError, Driver, Runtime, StreamSettings, seed, task};

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
    /// The backoff sets the delay before each start, and how many are tried in a row; a process
    /// that ran for the [`ceiling`](Backoff::ceiling) counts as a success. After the last attempt
    /// the connection closes.
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
        observer: impl Fn(Direction, &[u8]) + Send + Sync + 'static,
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
    connect_showing(command, host, options, &StderrTail::default()).await
}

/// Like [`connect_with`], and shows the last lines of the server's standard error meanwhile.
pub(crate) async fn connect_showing<P: Process>(
    command: impl Into<P::Command>,
    host: &Host,
    options: SpawnOptions,
    tail: &StderrTail,
) -> Result<ChildConnection<P>, Error> {
    let mut command = command.into();
    let runtime = P::Runtime::current();
    tail.clear();
    let (mut child, stream) = ChildServer::<P>::start(&mut command, Stderr::Keep, tail.clone())?;
    let (client, mut endpoint) = host.connect(seed(), runtime.now());
    endpoint.set_spawner(Spawner::new(P::Runtime::spawn_blocking));
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
                tail.clear();
                (child, stream) = ChildServer::start(&mut command, Stderr::Keep, tail.clone())?;
                driver = drive(&runtime, endpoint, observer.watch(stream));
            }
            OpenOutcome::Closed(reason) => {
                let _driving = task::spawn(&runtime, driver);
                // A child that exited has explained why on its standard error; one still running is
                // killed. What it left behind is given time to end.
                let limit = grace_periods.terminate + GracePeriods::DEFAULT.terminate;
                let report = timeout(&runtime, limit, child.wait()).await.and_then(Result::ok);
                let stderr_tail = child.stderr_tail();
                let exited = report.filter(|_| matches!(reason, CloseReason::EndOfInput));
                let status = exited.map(|report| report.status);
                let reason = Box::new(reason);
                let stray_line = client.stray_line();
                return Err(Error::Closed { reason, status, stray_line, stderr_tail });
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
    /// [`Failure::ConnectionLost`](mcp_sansio::peer::Failure::ConnectionLost). The connection
    /// closes, unless it [starts the server again](SpawnOptions::respawn).
    pub fn kill(&self) {
        self.slot.with(ChildServer::kill);
    }

    /// Returns the last 32 lines of the server's standard error so far, each of at most 4,096
    /// bytes.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.slot.stderr_tail()
    }

    /// Closes the connection and the server's input, and terminates the server if it does not exit.
    /// It is not started again. The connection is closed when this returns.
    ///
    /// # Errors
    ///
    /// The system has lost the child: other code in this process has already waited for it.
    pub async fn shutdown(mut self) -> Result<ExitReport, Error> {
        self.client.close();
        if let Some(child) = self.slot.close() {
            let report = child.shutdown(self.slot.grace_periods()).await?;
            // The driver may not have been polled since: its end closes the connection.
            self.driver.abort();
            let _ended = (&mut self.driver).await;
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

// ------------------------------------------------------------------ observer

type Observe = dyn Fn(Direction, &[u8]) + Send + Sync;

/// The function that sees the bytes of a connection, if any.
#[derive(Clone, Default)]
pub(super) struct ByteObserver(Option<Arc<Observe>>);

impl ByteObserver {
    pub(super) const NONE: Self = Self(None);

    pub(super) fn new(observe: impl Fn(Direction, &[u8]) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(observe)))
    }

    /// Returns the stream of a server whose bytes this observer sees.
    pub(super) fn watch<P: Process>(&self, stream: ChildStream<P::Stream>) -> ServerStream<P> {
        ServerStream::Open { stream, observer: self.clone() }
    }

    pub(super) fn show(&self, direction: Direction, bytes: &[u8]) {
        if let Some(observe) = &self.0 {
            observe(direction, bytes);
        }
    }
}

impl fmt::Debug for ByteObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteObserver").field("is_set", &self.0.is_some()).finish()
    }
}

// ------------------------------------------------------------------ supervisor

/// Drives the client of a child process.
pub(super) type ChildDriver<P> =
    Driver<ClientEndpoint, ServerStream<P>, <<P as Process>::Runtime as Runtime>::Timer>;

/// Creates a driver on a stream.
pub(super) fn drive<P: Process>(
    runtime: &P::Runtime,
    endpoint: ClientEndpoint,
    stream: ServerStream<P>,
) -> ChildDriver<P> {
    let driver = Driver::with_settings(endpoint, stream, runtime.timer(), StreamSettings::pipe());
    driver.restarting()
}

/// Drives an open connection to its end. Starts the server again after each end of its process that
/// the application did not ask for, if `respawn` is set.
// MCP 2026-07-28 basic/transports/stdio#unexpected-termination [STDIO-019]
pub(super) async fn supervise<P: Process>(
    slot: Arc<ChildSlot<P>>,
    mut command: P::Command,
    mut driver: ChildDriver<P>,
    respawn: Option<Backoff>,
    runtime: P::Runtime,
) -> Result<(), DriveError> {
    let Some(backoff) = respawn else { return driver.await };
    let mut attempts = Attempts::new(backoff, seed());
    loop {
        let since = runtime.now();
        let ended = (&mut driver).await;
        if !driver.wants_stream() {
            return ended;
        }
        if runtime.now().saturating_since(since) >= backoff.ceiling {
            attempts.reset();
        }
        let (endpoint, stream, _) = driver.into_parts();
        drop(stream);
        slot.end().await;
        // Meanwhile the application can make calls, which wait, and close the connection.
        driver = drive(&runtime, endpoint, ServerStream::None);
        let stream = loop {
            let delay = attempts.next_delay(None).filter(|_| !slot.is_closed());
            let Some(delay) = delay else {
                driver.endpoint_mut().handle_eof(runtime.now());
                return driver.await;
            };
            if let Some(ended) = timeout(&runtime, delay, &mut driver).await {
                return ended;
            }
            if let Some(stream) = slot.start(&mut command) {
                break stream;
            }
        };
        let (mut endpoint, ..) = driver.into_parts();
        endpoint.resume(runtime.now());
        driver = drive(&runtime, endpoint, slot.observer.watch(stream));
    }
}

/// The stream of the server, or that of a server that does not run, on which nothing happens.
pub(super) enum ServerStream<P: Process> {
    Open { stream: ChildStream<P::Stream>, observer: ByteObserver },
    None,
}

impl<P: Process> ByteStream for ServerStream<P> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Open { stream, observer } => {
                let read = stream.poll_read(cx, buffer);
                if let Poll::Ready(Ok(length)) = read {
                    observer.show(Direction::Received, &buffer[..length]);
                }
                read
            }
            Self::None => Poll::Pending,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Open { stream, observer } => {
                let written = stream.poll_write(cx, bytes);
                if let Poll::Ready(Ok(length)) = written {
                    observer.show(Direction::Sent, &bytes[..length]);
                }
                written
            }
            Self::None => Poll::Pending,
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Open { stream, .. } => stream.poll_flush(cx),
            Self::None => Poll::Ready(Ok(())),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Open { stream, .. } => stream.poll_close(cx),
            Self::None => Poll::Ready(Ok(())),
        }
    }
}

/// The process of a connection, which may be replaced.
#[derive(Debug)]
pub(super) struct ChildSlot<P: Process> {
    state: Mutex<State<P>>,
    grace_periods: GracePeriods,
    observer: ByteObserver,
}

#[derive(Debug)]
struct State<P: Process> {
    child: Option<ChildServer<P>>,
    /// How the last process ended.
    last: Option<ExitReport>,
    is_closed: bool,
}

impl<P: Process> ChildSlot<P> {
    pub(super) const fn new(
        child: ChildServer<P>,
        grace_periods: GracePeriods,
        observer: ByteObserver,
    ) -> Self {
        let state = Mutex::new(State { child: Some(child), last: None, is_closed: false });
        Self { state, grace_periods, observer }
    }

    pub(super) const fn grace_periods(&self) -> GracePeriods {
        self.grace_periods
    }

    /// Calls a function with the process, if it runs.
    pub(super) fn with<R>(&self, look: impl FnOnce(&mut ChildServer<P>) -> R) -> Option<R> {
        self.lock().child.as_mut().map(look)
    }

    /// Takes the process. No other one is started.
    pub(super) fn close(&self) -> Option<ChildServer<P>> {
        let mut state = self.lock();
        state.is_closed = true;
        state.child.take()
    }

    fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    pub(super) fn last_report(&self) -> Option<ExitReport> {
        self.lock().last.clone()
    }

    pub(super) fn stderr_tail(&self) -> Vec<String> {
        let state = self.lock();
        match (&state.child, &state.last) {
            (Some(child), _) => child.stderr_tail(),
            (None, Some(last)) => last.stderr_tail.clone(),
            (None, None) => Vec::new(),
        }
    }

    /// Ends the process: two instances could interfere with each other.
    async fn end(&self) {
        let child = self.lock().child.take();
        if let Some(child) = child
            && let Ok(report) = child.shutdown(self.grace_periods).await
        {
            self.lock().last = Some(report);
        }
    }

    /// Starts a process, and returns its stream; `None` if that failed, or the slot is closed.
    fn start(&self, command: &mut P::Command) -> Option<ChildStream<P::Stream>> {
        let mut state = self.lock();
        if state.is_closed {
            return None;
        }
        let started = ChildServer::start(command, Stderr::Keep, StderrTail::default());
        let (child, stream) = started.ok()?;
        state.child = Some(child);
        Some(stream)
    }

    // A panic elsewhere leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
