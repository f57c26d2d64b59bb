use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Tells a task on another thread to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    waker: Option<Waker>,
}

impl Stop {
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the task was told to end; if not, it is woken when it is.
    fn poll_stopped(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        state.stopped
    }

    /// Runs `future` until it ends or is told to stop, which makes `None`. It is dropped before
    /// this ends.
    pub(crate) async fn guard<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        std::future::poll_fn(|cx| {
            if self.poll_stopped(cx) {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
