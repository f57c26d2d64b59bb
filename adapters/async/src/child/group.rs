use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::members::Members;

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

    /// Returns whether processes other than the child may be running.
    pub(super) fn has_other_members(&self) -> bool {
        self.lock().members.as_ref().is_some_and(Members::others_run)
    }

    /// Leaves the signals to the shutdown, which knows how long to wait.
    pub(super) fn start_shutdown(&self) {
        self.lock().is_shutting_down = true;
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.lock().is_shutting_down
    }

    pub(super) fn was_killed(&self) -> bool {
        self.lock().was_killed
    }

    /// Ready when the processes were killed.
    pub(super) fn poll_killed(&self, cx: &mut Context<'_>) -> Poll<()> {
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
