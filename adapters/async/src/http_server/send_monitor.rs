use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_sansio::Instant;

use super::budget::{Budget, Charge};
use super::runtime::AnyRuntime;
use super::stall::PROGRESS_BYTES;
use crate::StopHandle;

/// How far the client of an HTTP/2 stream has taken its response.
///
/// The HTTP library has one chunk of it at a time, which is taken when the library drops it: all of
/// it is written then. While the client's window is closed, hyper asks the body for nothing, so the
/// time is kept from outside.
#[derive(Debug)]
pub(super) struct SendMonitor {
    /// Ends the task of the stream, which resets it.
    task: Option<StopHandle>,
    runtime: Arc<dyn AnyRuntime>,
    budget: Budget,
    /// What the stream counts for beside its response.
    _stream: Charge,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Since when the client has taken too little of the chunk that the library has.
    since: Option<Instant>,
    /// Bytes taken since then.
    taken: usize,
    /// Whether the task can no longer reset the stream: it has ended, or was told to.
    is_over: bool,
    /// The task, while it waits for the chunk to be taken.
    waker: Option<Waker>,
}

/// What is to be done about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The client has taken all that there is.
    Taken,
    /// The client has until then.
    Until(Instant),
    /// It has taken too little for too long, and its stream cannot be reset any more.
    Stuck,
}

impl SendMonitor {
    pub(super) fn new(
        task: Option<StopHandle>,
        runtime: Arc<dyn AnyRuntime>,
        budget: Budget,
        stream: Charge,
    ) -> Self {
        Self { task, runtime, budget, _stream: stream, state: Mutex::default() }
    }

    /// Charges a part of a response whose length is not known. What it is a part of has bounds of its
    /// own, and cannot be refused any more.
    pub(super) fn charge(&self, bytes: usize) -> Charge {
        self.budget.charge_always(bytes)
    }

    /// The library is given a chunk.
    pub(super) fn begin(&self) {
        let now = self.runtime.now();
        let mut state = self.lock();
        state.since = Some(now);
        state.taken = 0;
    }

    /// Whether the library has a chunk. If so, the task of `cx` is woken when it is taken.
    pub(super) fn is_busy(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        if state.since.is_none() {
            return false;
        }
        if !state.waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        true
    }

    /// The client has taken a part of the chunk.
    pub(super) fn advance(&self, bytes: usize) {
        let mut state = self.lock();
        state.taken += bytes;
        if state.taken >= PROGRESS_BYTES {
            state.taken = 0;
            state.since = Some(self.runtime.now());
        }
    }

    /// The library has dropped the chunk.
    pub(super) fn finish(&self) {
        let waker = {
            let mut state = self.lock();
            state.since = None;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The task of the stream has ended.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
    }

    /// Resets the stream where the client has taken too little for `stall_timeout`.
    pub(super) fn check(&self, now: Instant, stall_timeout: Duration) -> Progress {
        let mut state = self.lock();
        let Some(since) = state.since else { return Progress::Taken };
        let deadline = since + stall_timeout;
        if deadline > now {
            return Progress::Until(deadline);
        }
        match &self.task {
            Some(task) if !state.is_over => {
                state.is_over = true;
                // The library drops the chunk when it sends the reset.
                state.since = Some(now);
                drop(state);
                task.stop();
                Progress::Until(now + stall_timeout)
            }
            _ => Progress::Stuck,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
