use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::Runtime;

/// A spawned task. Dropping the handle detaches the task.
///
/// Resolves when the task ends, with `None` if it panicked or was aborted.
pub(crate) struct Task<T>(Arc<Shared<T>>);

struct Shared<T>(Mutex<State<T>>);

struct State<T> {
    progress: Progress<T>,
    aborted: bool,
    /// Wakes the task when it is aborted.
    task: Option<Waker>,
    /// Wakes the owner of the handle when the task has ended.
    handle: Option<Waker>,
}

enum Progress<T> {
    Running,
    Ended(Option<T>),
}

/// Spawns a future and returns a handle to its task.
pub(crate) fn spawn<F>(runtime: &impl Runtime, future: F) -> Task<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let (task, end) = unstarted();
    runtime.spawn(async move {
        let output = until_aborted(&end.0, future).await;
        end.0.end(output);
    });
    task
}

/// Runs a function on a thread that may block, and returns a handle to it.
pub(crate) fn spawn_blocking<R: Runtime, T: Send + 'static>(
    function: impl FnOnce() -> T + Send + 'static,
) -> Task<T> {
    let (task, end) = unstarted();
    R::spawn_blocking(Box::new(move || end.0.end(Some(function()))));
    task
}

fn unstarted<T>() -> (Task<T>, EndGuard<T>) {
    let state = State { progress: Progress::Running, aborted: false, task: None, handle: None };
    let shared = Arc::new(Shared(Mutex::new(state)));
    (Task(Arc::clone(&shared)), EndGuard(shared))
}

async fn until_aborted<F: Future>(shared: &Shared<F::Output>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if shared.is_aborted(cx) {
            return Poll::Ready(None);
        }
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

impl<T> Task<T> {
    /// Drops the future of the task as soon as it is not being polled.
    pub(crate) fn abort(&self) {
        let mut state = self.0.lock();
        state.aborted = true;
        let task = state.task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl<T> Future for Task<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.lock();
        match &mut state.progress {
            Progress::Ended(output) => Poll::Ready(output.take()),
            Progress::Running => {
                state.handle = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = matches!(self.0.lock().progress, Progress::Running);
        f.debug_struct("Task").field("running", &running).finish_non_exhaustive()
    }
}

impl<T> Shared<T> {
    fn is_aborted(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        if !state.task.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            state.task = Some(cx.waker().clone());
        }
        state.aborted
    }

    fn end(&self, output: Option<T>) {
        let mut state = self.lock();
        if matches!(state.progress, Progress::Ended(_)) {
            return;
        }
        state.progress = Progress::Ended(output);
        let handle = state.handle.take();
        drop(state);
        if let Some(handle) = handle {
            handle.wake();
        }
    }

    // A panic elsewhere leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the task for its handle, even if the future panics or the runtime drops it.
struct EndGuard<T>(Arc<Shared<T>>);

impl<T> Drop for EndGuard<T> {
    fn drop(&mut self) {
        self.0.end(None);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use mcp_sansio::Instant;

    use super::*;
    use crate::{CatchPanic, Timer};

    type Spawned = Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Keeps its tasks until a test polls them.
    #[derive(Clone, Default)]
    struct ManualRuntime(Arc<Mutex<Vec<Spawned>>>);

    impl ManualRuntime {
        /// Polls each task once, and drops those that have completed.
        fn run_tasks(&self) {
            let mut tasks = self.0.lock().unwrap();
            tasks.retain_mut(|task| poll(task.as_mut()).is_pending());
        }
    }

    impl fmt::Debug for ManualRuntime {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("ManualRuntime")
        }
    }

    impl Timer for ManualRuntime {
        fn now(&self) -> Instant {
            Instant::ZERO
        }

        fn poll_until(&mut self, _: &mut Context<'_>, _: Instant) -> Poll<()> {
            Poll::Pending
        }
    }

    impl Runtime for ManualRuntime {
        type Timer = Self;

        fn current() -> Self {
            Self::default()
        }

        fn timer(&self) -> Self {
            self.clone()
        }

        fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
            self.0.lock().unwrap().push(Box::pin(CatchPanic::new(future)));
        }
    }

    fn poll<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_task_ends_with_its_output_or_with_none_when_it_panics() {
        let runtime = ManualRuntime::current();
        let mut task = spawn(&runtime, async { 7 });
        let mut panics = spawn(&runtime, async { panic!("for the test") });
        assert_eq!(poll(Pin::new(&mut task)), Poll::Pending);
        runtime.run_tasks();
        assert_eq!(poll(Pin::new(&mut task)), Poll::Ready(Some(7)));
        assert_eq!(poll(Pin::new(&mut panics)), Poll::Ready(None::<()>));
    }

    #[test]
    fn a_task_continues_when_its_handle_is_dropped_and_ends_when_it_is_aborted() {
        let (runtime, held) = (ManualRuntime::current(), Arc::new(()));
        let observed = Arc::downgrade(&held);
        let mut task = spawn(&runtime, async move {
            pending::<()>().await;
            drop(held);
        });
        drop(spawn(&runtime, pending::<()>()));
        runtime.run_tasks();
        assert_eq!((runtime.0.lock().unwrap().len(), observed.strong_count()), (2, 1));
        task.abort();
        runtime.run_tasks();
        assert_eq!((runtime.0.lock().unwrap().len(), observed.strong_count()), (1, 0));
        assert_eq!(poll(Pin::new(&mut task)), Poll::Ready(None));
    }
}
