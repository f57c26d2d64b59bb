use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};

/// A thread that can be told to end. Dropped, it is told to, and waited for.
#[derive(Debug)]
pub(crate) struct Worker<E> {
    stop: Stop,
    /// `None` once it is joined.
    thread: Option<JoinHandle<Result<(), E>>>,
}

impl<E: Send + 'static> Worker<E> {
    pub(crate) fn spawn(
        name: &str,
        run: impl FnOnce(&Stop) -> Result<(), E> + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Stop::default();
        let stopped = stop.clone();
        let thread = thread::Builder::new().name(name.into()).spawn(move || run(&stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until it has ended by itself. Panics if the thread has.
    pub(crate) fn join(mut self) -> Result<(), E> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Tells it to end, and waits for that.
    pub(crate) fn stop(self) -> Result<(), E> {
        self.stop.stop();
        self.join()
    }
}

impl<E> Drop for Worker<E> {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // Whoever wants to know how it ended asks with `join` or `stop`.
            let _ = thread.join();
        }
    }
}

/// Tells a task on another thread to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    waker: Option<Waker>,
}

impl Stop {
    fn stop(&self) {
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

    /// Waits until the task is told to end.
    #[cfg(feature = "http-server")]
    pub(crate) async fn stopped(&self) {
        std::future::poll_fn(
            |cx| {
                if self.poll_stopped(cx) { Poll::Ready(()) } else { Poll::Pending }
            },
        )
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
