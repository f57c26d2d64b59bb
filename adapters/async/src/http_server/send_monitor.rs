use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use mcp_sansio::Instant;

use super::budget::{CallerName, Charge, ConnectionBudget};
use super::http2::StreamPermit;
use super::runtime::AnyRuntime;
use super::stall::PROGRESS_BYTES;
use crate::StopHandle;

/// Tracks how much of its response the client of an HTTP/2 stream has read.
///
/// The HTTP library holds one chunk at a time, and drops it once it is completely written. While
/// the client's window is closed, hyper does not poll the body, so the time is tracked outside of
/// it.
#[derive(Debug)]
pub(super) struct SendMonitor {
    /// Ends the task of the stream, which resets it.
    task: Option<StopHandle>,
    runtime: Arc<dyn AnyRuntime>,
    budget: ConnectionBudget,
    /// Charge for the stream, in addition to its response.
    _stream: StreamPermit,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Start of the period in which the client has read too little of the current chunk.
    since: Option<Instant>,
    /// Bytes read since then.
    taken: usize,
    /// Whether the task can no longer reset the stream, because it has ended or was told to.
    is_over: bool,
    /// The task, while it waits for the chunk to be written.
    waker: Option<Waker>,
}

/// The state of a stream at a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The client has read everything available.
    Taken,
    /// The client has until then.
    Until(Instant),
    /// The client has read too little for too long, and its stream can no longer be reset.
    Stuck,
}

impl SendMonitor {
    pub(super) fn new(
        task: Option<StopHandle>,
        runtime: Arc<dyn AnyRuntime>,
        budget: ConnectionBudget,
        stream: StreamPermit,
    ) -> Self {
        Self { task, runtime, budget, _stream: stream, state: Mutex::default() }
    }

    /// Charges a part of a response whose length is unknown. Its stream has its own limits, and can
    /// no longer be refused.
    pub(super) fn charge(&self, bytes: usize, caller: Option<&CallerName>) -> Charge {
        self.budget.charge_always(bytes, caller)
    }

    /// Starts a chunk that the library has taken.
    pub(super) fn begin(&self) {
        let now = self.runtime.now();
        let mut state = self.lock();
        state.since = Some(now);
        state.taken = 0;
    }

    /// Returns whether the library holds a chunk. If so, the task of `cx` is woken when the chunk
    /// is dropped.
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

    /// Records that the client has read a part of the chunk.
    pub(super) fn advance(&self, bytes: usize) {
        let mut state = self.lock();
        state.taken += bytes;
        if state.taken >= PROGRESS_BYTES {
            state.taken = 0;
            state.since = Some(self.runtime.now());
        }
    }

    /// Records that the library has dropped the chunk.
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

    /// Records that the task of the stream has ended.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
    }

    /// Resets the stream if the client has read too little for `stall_timeout`.
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
