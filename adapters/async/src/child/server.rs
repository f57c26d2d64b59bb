use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{fmt, io};

use super::members::Members;
use super::stream::StreamControl;
use super::{ChildStream, ExitReport, Process, SpawnError, Stderr, StderrTail};
use crate::runtime::timeout;
use crate::task::{Task, spawn, spawn_blocking};
use crate::{ByteStream, Runtime};

/// A server that runs as a child process and communicates over its standard streams.
///
/// Drive the stream returned with it. When the connection is over, end the child with
/// [`shutdown`](Self::shutdown); dropping this value kills the child. If the connection ends
/// unexpectedly, [`wait`](Self::wait) reports how the child exited.
///
/// The exit of the child ends the connection, even if a process that it started holds the pipe.
///
/// On Unix the child leads its own process group, and signals are sent to the whole group:
/// processes that a launcher such as a shell or a package runner has started end with it. If some
/// outlive the child, they get `SIGTERM`, and `SIGKILL` after [`GracePeriods::terminate`]. Ctrl-C at
/// a terminal only reaches this process; the child then reads the end of its input. On Windows the
/// child and the processes that it started are a job object, which also ends with this process.
pub struct ChildServer<P: Process> {
    group: Arc<Group>,
    stream: StreamControl<P::Stream>,
    stderr: StderrTail,
    watch: Task<io::Result<ExitStatus>>,
    status: Option<ExitStatus>,
    runtime: P::Runtime,
}

/// How long [`ChildServer::shutdown`] waits at each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GracePeriods {
    /// Time from closing the child's input to `SIGTERM`, on Windows to termination. 2 s: an idle
    /// server needs a few milliseconds.
    pub end_of_input: Duration,
    /// Time from `SIGTERM` to `SIGKILL`. 2 s.
    pub terminate: Duration,
}

impl GracePeriods {
    /// The defaults.
    pub const DEFAULT: Self =
        Self { end_of_input: Duration::from_secs(2), terminate: Duration::from_secs(2) };
}

impl Default for GracePeriods {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl<P: Process> ChildServer<P> {
    /// Starts a command, a `std::process::Command` or that of the runtime, and keeps the last lines
    /// of its standard error.
    ///
    /// # Errors
    ///
    /// The process did not start: see [`SpawnError`], whose message is meant for the user.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`] does.
    pub fn spawn(
        command: impl Into<P::Command>,
    ) -> Result<(Self, ChildStream<P::Stream>), SpawnError> {
        Self::spawn_with(command, Stderr::Keep)
    }

    /// Like [`spawn`](Self::spawn), with the given handling of standard error.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
    // MCP 2025-11-25 basic/transports#stdio [STDIO-007]: the client launches the server as a
    // subprocess and communicates over its standard streams.
    pub fn spawn_with(
        command: impl Into<P::Command>,
        stderr: Stderr,
    ) -> Result<(Self, ChildStream<P::Stream>), SpawnError> {
        Self::start(&mut command.into(), stderr, StderrTail::default())
    }

    /// Starts a command that can be started again.
    pub(super) fn start(
        command: &mut P::Command,
        sink: Stderr,
        tail: StderrTail,
    ) -> Result<(Self, ChildStream<P::Stream>), SpawnError> {
        let (process, stream, stderr) = P::start(command)?;
        let runtime = P::Runtime::current();
        #[cfg(unix)]
        let members = process.id().and_then(Members::of);
        #[cfg(windows)]
        let members = process.raw_handle().and_then(Members::of);
        let group = Arc::new(Group::new(process.id(), members));
        let reader = StderrReader::start::<P>(&runtime, stderr, sink, tail.clone());
        let stream = ChildStream::new(stream, runtime.clone());
        let control = stream.control();
        let watched = watch(process, Arc::clone(&group), control.clone(), reader, runtime.clone());
        let watch = spawn(&runtime, watched);
        let server = Self { group, stream: control, stderr: tail, watch, status: None, runtime };
        Ok((server, stream))
    }

    /// Returns the process id, or `None` once the child has exited.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.group.id()
    }

    /// Returns the last 32 lines of the child's standard error so far, each of at most 4,096 bytes.
    /// To keep more, or to forward them, use [`spawn_with`](Self::spawn_with).
    // MCP 2025-11-25 basic/transports#stdio [STDIO-006]: output there is not an error.
    #[must_use]
    pub fn stderr_tail(&self) -> Vec<String> {
        self.stderr.lines()
    }

    /// Waits until the child exits, and reports how. Processes that it leaves behind end first.
    /// Cancel-safe.
    ///
    /// # Errors
    ///
    /// The system has lost the child: other code in this process has already waited for it.
    pub async fn wait(&mut self) -> io::Result<ExitReport> {
        let status = self.exit().await?;
        Ok(self.report(status, false))
    }

    /// Ends the child and the processes that it started: closes its input, waits, then terminates
    /// them, gracefully at first.
    ///
    /// Keep driving its stream meanwhile, or drop it: the child does not exit while it is blocked
    /// on writing its output.
    ///
    /// # Errors
    ///
    /// The system has lost the child: other code in this process has already waited for it.
    // MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-016]: close the input, wait, then
    // terminate forcibly.
    // MCP 2025-11-25 basic/lifecycle#shutdown [STDIO-015]: SIGTERM, then SIGKILL.
    pub async fn shutdown(mut self, grace_periods: GracePeriods) -> io::Result<ExitReport> {
        self.group.start_shutdown();
        self.stream.close_input();
        let runtime = self.runtime.clone();
        if let Some(status) = timeout(&runtime, grace_periods.end_of_input, self.exit()).await {
            return Ok(self.report(status?, false));
        }
        #[cfg(unix)]
        {
            self.group.terminate();
            if let Some(status) = timeout(&runtime, grace_periods.terminate, self.exit()).await {
                return Ok(self.report(status?, true));
            }
        }
        self.kill();
        let status = self.exit().await?;
        Ok(self.report(status, true))
    }

    /// Waits until the child and the processes that it left behind have ended.
    async fn exit(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let lost = || io::Error::other("the runtime has dropped the task that waits for the child");
        let status = (&mut self.watch).await.ok_or_else(lost)??;
        self.status = Some(status);
        Ok(status)
    }

    fn report(&self, status: ExitStatus, forced: bool) -> ExitReport {
        ExitReport::new(status, self.stderr.lines(), forced)
    }

    /// Kills the child, and the processes that it started. To end them gracefully, use
    /// [`shutdown`](Self::shutdown).
    pub fn kill(&mut self) {
        self.group.kill();
    }
}

impl<P: Process> Drop for ChildServer<P> {
    fn drop(&mut self) {
        self.kill();
    }
}

impl<P: Process> fmt::Debug for ChildServer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildServer").field("id", &self.id()).finish_non_exhaustive()
    }
}

// ------------------------------------------------------------------ group

/// A child process and the processes that it started: on Unix its process group, on Windows its job
/// object.
#[derive(Debug)]
pub(super) struct Group(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The process id of the child, until it is waited for.
    id: Option<u32>,
    /// Dropped before the child is waited for: its id may be reused afterwards.
    members: Option<Members>,
    was_killed: bool,
    is_shutting_down: bool,
    /// Wakes the task that waits for the child.
    watcher: Option<Waker>,
}

impl Group {
    pub(super) fn new(id: Option<u32>, members: Option<Members>) -> Self {
        Self(Mutex::new(State {
            id,
            members,
            was_killed: false,
            is_shutting_down: false,
            watcher: None,
        }))
    }

    /// Returns the process id of the child, or `None` once it has exited.
    pub(super) fn id(&self) -> Option<u32> {
        self.lock().id
    }

    /// Requests all processes to end.
    pub(super) fn terminate(&self) {
        if let Some(members) = &self.lock().members {
            members.terminate();
        }
    }

    /// Kills all processes.
    pub(super) fn kill(&self) {
        let mut state = self.lock();
        state.was_killed = true;
        if let Some(members) = &mut state.members {
            members.kill();
        }
        let watcher = state.watcher.take();
        drop(state);
        if let Some(watcher) = watcher {
            watcher.wake();
        }
    }

    /// Ends the use of the process id, which may be reused once the child is waited for.
    pub(super) fn forget(&self) {
        let mut state = self.lock();
        (state.id, state.members) = (None, None);
    }

    /// Returns a check whether processes other than the child run. It may block, and returns `None`
    /// if the system does not tell.
    fn others_check(&self) -> Option<impl Fn() -> Option<bool> + Clone + Send + use<>> {
        self.lock().members.as_ref().map(Members::others_run)
    }

    /// Leaves the signals to the shutdown, which knows how long to wait.
    pub(super) fn start_shutdown(&self) {
        self.lock().is_shutting_down = true;
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.lock().is_shutting_down
    }

    /// Returns the output of a future, or `None` if the processes are killed before.
    pub(super) async fn unless_killed<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|cx| match self.poll_killed(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => future.as_mut().poll(cx).map(Some),
        })
        .await
    }

    /// Ready when the processes were killed.
    fn poll_killed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.was_killed {
            return Poll::Ready(());
        }
        if !state.watcher.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            state.watcher = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    // A panic elsewhere leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// ------------------------------------------------------------------ stderr

/// Bytes per read.
const CHUNK: usize = 4096;

/// The task that reads a child's standard error.
#[derive(Debug)]
pub(super) struct StderrReader {
    task: Task<()>,
    has_ended: bool,
}

impl StderrReader {
    pub(super) fn start<P: Process>(
        runtime: &P::Runtime,
        stderr: P::Stderr,
        sink: Stderr,
        tail: StderrTail,
    ) -> Self {
        Self { task: spawn(runtime, read::<P>(stderr, sink, tail)), has_ended: false }
    }

    /// Waits until no process holds the standard error any more. Returns false if that takes longer
    /// than `limit`.
    pub(super) async fn has_ended(&mut self, runtime: &impl Runtime, limit: Duration) -> bool {
        if !self.has_ended {
            self.has_ended = timeout(runtime, limit, &mut self.task).await.is_some();
        }
        self.has_ended
    }
}

impl Drop for StderrReader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read<P: Process>(mut stderr: P::Stderr, mut sink: Stderr, tail: StderrTail) {
    let mut chunk = [0; CHUNK];
    loop {
        let read = poll_fn(|cx| P::poll_stderr(&mut stderr, cx, &mut chunk));
        let length = read.await.unwrap_or(0);
        if let Some(text) = tail.take(&chunk[..length], &mut sink) {
            P::forward(text).await;
        }
        if length == 0 {
            return;
        }
    }
}

// ------------------------------------------------------------------ watch

/// How long to wait for output after the exit. The output is already in the pipe then; a process
/// that holds the write end open is not waited for.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// How often to wait for a task that reads output after the exit. A process outside of the group may
/// hold the pipe and write for ever.
const DRAIN_ROUNDS_MAX: u32 = 50;

/// Time between checks whether processes of the group still run. Only when some outlived the child.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Waits for the child, ends its stream and the processes that it left behind, and returns its exit
/// status.
pub(super) async fn watch<P: Process>(
    mut process: P,
    group: Arc<Group>,
    stream: StreamControl<P::Stream>,
    mut stderr: StderrReader,
    runtime: P::Runtime,
) -> io::Result<ExitStatus> {
    let guard = KillGuard(group);
    let group = &guard.0;
    if let Err(error) = exit(&mut process, group).await {
        group.forget();
        return Err(error);
    }
    if stream.is_open() {
        let end = end_output(stream, runtime.clone());
        drop(spawn(&runtime, end));
    }
    stderr.has_ended(&runtime, DRAIN_TIMEOUT).await;
    group.unless_killed(end_others(group, &mut stderr, &runtime)).await;
    // Until the child is waited for, no other group can have its id.
    group.kill();
    group.forget();
    let status = process.wait().await;
    stderr.has_ended(&runtime, DRAIN_TIMEOUT).await;
    status
}

/// Kills the processes if the runtime drops the task.
struct KillGuard(Arc<Group>);

impl Drop for KillGuard {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Waits until the child has exited, and leaves it to be waited for.
async fn exit<P: Process>(process: &mut P, group: &Group) -> io::Result<()> {
    if let Some(outcome) = group.unless_killed(exited(process)).await {
        return outcome;
    }
    process.kill();
    exited(process).await
}

/// Ends the output of a child that has exited, even if another process holds the pipe.
async fn end_output<S: ByteStream>(stream: StreamControl<S>, runtime: impl Runtime) {
    for _ in 0..DRAIN_ROUNDS_MAX {
        timeout(&runtime, DRAIN_TIMEOUT, pending::<()>()).await;
        if stream.is_drained() {
            break;
        }
    }
    stream.end_output();
}

/// Waits until the process has exited. On Unix its id remains in use, if possible, until
/// [`Process::wait`] is called, so that its process group can be ended before.
async fn exited<P: Process>(process: &mut P) -> io::Result<()> {
    #[cfg(unix)]
    let id = process.id();
    let mut wait = pin!(process.wait());
    poll_fn(|cx| {
        // The runtime wakes this task, and waits for the process in the next poll.
        #[cfg(unix)]
        if id.is_some_and(super::members::has_exited) {
            return Poll::Ready(Ok(()));
        }
        wait.as_mut().poll(cx).map_ok(drop)
    })
    .await
}

/// Gives the processes that the child left behind time to end.
// MCP 2025-11-25 basic/lifecycle#shutdown [STDIO-015]: also if only a launcher ends on SIGTERM.
async fn end_others<R: Runtime>(group: &Group, stderr: &mut StderrReader, runtime: &R) {
    // A shutdown sends the signals itself.
    if !group.is_shutting_down() {
        group.terminate();
    }
    let Some(check) = group.others_check() else { return };
    let limit = GracePeriods::DEFAULT.terminate;
    let end = runtime.now() + limit;
    while group.is_shutting_down() || runtime.now() < end {
        let others_run = timeout(runtime, limit, spawn_blocking::<R, _>(check.clone())).await;
        let others_run = match others_run.flatten().flatten() {
            Some(others_run) => others_run,
            // Unless the system tells, those that hold the standard error do.
            None => !stderr.has_ended(runtime, Duration::ZERO).await,
        };
        if !others_run {
            return;
        }
        timeout(runtime, CHECK_INTERVAL, pending::<()>()).await;
    }
}
