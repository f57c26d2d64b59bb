//! Runs blocking work away from the thread that waits for it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;

/// Runs a job on a thread that may block.
pub(crate) type Spawner = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// Returns a spawner with a new thread per job. If the system is out of threads, the job is
/// dropped.
pub(crate) fn on_threads() -> Spawner {
    Arc::new(|job| {
        let _started = thread::Builder::new().name("mcp-credentials".into()).spawn(job);
    })
}

/// Returns the result of `work` once it has run; `None` if it was dropped or panicked.
pub(crate) async fn run<T: Send + 'static>(
    spawner: &Spawner,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let shared = Arc::new(Mutex::new(State::Running(None)));
    let promise = Promise(Arc::clone(&shared));
    spawner(Box::new(move || promise.keep(work())));
    poll_fn(|cx| {
        let mut state = lock(&shared);
        match &mut *state {
            State::Running(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            State::Over(result) => Poll::Ready(result.take()),
        }
    })
    .await
}

enum State<T> {
    Running(Option<Waker>),
    Over(Option<T>),
}

/// Completes the future, with or without a result.
struct Promise<T>(Arc<Mutex<State<T>>>);

impl<T> Promise<T> {
    fn keep(self, result: T) {
        self.end(Some(result));
    }

    fn end(&self, result: Option<T>) {
        let mut state = lock(&self.0);
        let State::Running(waker) = &mut *state else { return };
        let waker = waker.take();
        *state = State::Over(result);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.end(None);
    }
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
