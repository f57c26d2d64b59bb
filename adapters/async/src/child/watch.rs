use std::future::{Future as _, pending, poll_fn};
use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::group::Group;
use super::stderr::StderrReader;
use super::stream::StreamControl;
use super::{GracePeriods, Process};
use crate::timer::timeout;
use crate::{ByteStream, Runtime, task};

/// How long to wait for output after the exit. The output is already in the pipe then; a process
/// that holds the write end open is not waited for.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

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
        drop(task::spawn(&runtime, end));
    }
    if !stderr.has_ended(&runtime, DRAIN_TIMEOUT).await {
        end_others(group, &mut stderr, &runtime).await;
    }
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
    {
        let mut exited = pin!(exited(process));
        let outcome = poll_fn(|cx| match group.poll_killed(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => exited.as_mut().poll(cx).map(Some),
        });
        if let Some(outcome) = outcome.await {
            return outcome;
        }
    }
    process.kill();
    exited(process).await
}

/// Ends the output of a child that has exited, even if another process holds the pipe.
async fn end_output<S: ByteStream>(stream: StreamControl<S>, runtime: impl Runtime) {
    timeout(&runtime, DRAIN_TIMEOUT, pending::<()>()).await;
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
async fn end_others(group: &Group, stderr: &mut StderrReader, runtime: &impl Runtime) {
    let end = runtime.now() + GracePeriods::default().terminate;
    let mut is_told = false;
    while group.has_other_members() && !group.was_killed() {
        // A shutdown sends the signals itself.
        if !group.is_shutting_down() {
            if runtime.now() >= end {
                return;
            }
            if !is_told {
                is_told = true;
                group.terminate();
            }
        }
        if stderr.has_ended(runtime, CHECK_INTERVAL).await {
            return;
        }
    }
}
