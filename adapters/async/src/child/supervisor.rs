use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use mcp_sansio::{Attempts, Backoff};
use mcp_sansio_handlers::endpoint::ClientEndpoint;
use mcp_sansio_handlers::endpoint::Endpoint as _;

use super::observer::ByteObserver;
use super::{
    ChildServer, ChildStream, ExitReport, GracePeriods, Process, Stderr, TransferDirection,
};
use crate::timer::timeout;
use crate::{ByteStream, DriveError, Driver, Runtime, StreamSettings, seed};

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
                    observer.show(TransferDirection::Received, &buffer[..length]);
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
                    observer.show(TransferDirection::Sent, &bytes[..length]);
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
        let (child, stream) = ChildServer::start(command, Stderr::Keep).ok()?;
        state.child = Some(child);
        Some(stream)
    }

    // A panic elsewhere leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
