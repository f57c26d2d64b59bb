use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
#[cfg(feature = "async-std")]
use std::pin::pin;
#[cfg(feature = "async-std")]
use std::task::Waker;
use std::task::{Context, Poll, ready};

/// Whose threads run tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Executor {
    #[cfg(feature = "smol")]
    Smol,
    #[cfg(feature = "async-std")]
    AsyncStd,
}

impl Executor {
    /// The one of the task that this is called in; where it is in none of async-std, smol's.
    pub(crate) fn current() -> Self {
        #[cfg(all(feature = "smol", feature = "async-std"))]
        return if async_std::task::try_current().is_some() { Self::AsyncStd } else { Self::Smol };
        #[cfg(all(feature = "smol", not(feature = "async-std")))]
        return Self::Smol;
        #[cfg(not(feature = "smol"))]
        Self::AsyncStd
    }

    /// Runs `future` on its own. One that panics ends nothing but itself.
    pub(crate) fn spawn<F>(self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let future = Guarded(Box::pin(future));
        Task(Some(match self {
            #[cfg(feature = "smol")]
            Self::Smol => Handle::Smol(smol::spawn(future)),
            #[cfg(feature = "async-std")]
            Self::AsyncStd => Handle::AsyncStd(async_std::task::spawn(future)),
        }))
    }
}

#[cfg(feature = "http-server")]
impl mcp_sansio_async::http_server::Runtime for Executor {
    fn now(&self) -> mcp_sansio::Instant {
        crate::now()
    }

    fn timer(&self) -> Box<dyn crate::Timer + Send> {
        Box::new(crate::AsyncTimer::new())
    }

    fn spawn(&self, task: mcp_sansio_async::http_server::Task) {
        drop(Self::spawn(*self, task));
    }
}

/// Spawns what hyper wants spawned.
#[cfg(feature = "http-client")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tasks;

#[cfg(feature = "http-client")]
impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        drop(Executor::current().spawn(future));
    }
}

/// A task that was spawned. Dropped, it goes on.
///
/// Resolves when the task ends: with `None` if it panicked. The panic hook has reported that.
#[derive(Debug)]
pub(crate) struct Task<T>(Option<Handle<T>>);

#[derive(Debug)]
enum Handle<T> {
    #[cfg(feature = "smol")]
    Smol(smol::Task<Option<T>>),
    #[cfg(feature = "async-std")]
    AsyncStd(async_std::task::JoinHandle<Option<T>>),
}

impl<T> Task<T> {
    /// Ends the task, as soon as it is not being polled.
    pub(crate) fn abort(&mut self) {
        match self.0.take() {
            #[cfg(feature = "smol")]
            Some(Handle::Smol(task)) => drop(task),
            #[cfg(feature = "async-std")]
            Some(Handle::AsyncStd(task)) => {
                // The first poll says so to the task; the end of it is not waited for.
                let _ = pin!(task.cancel()).poll(&mut Context::from_waker(Waker::noop()));
            }
            None => {}
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        #[cfg(feature = "smol")]
        if let Some(Handle::Smol(task)) = self.0.take() {
            task.detach();
        }
    }
}

impl<T> Future for Task<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let output = match &mut self.0 {
            #[cfg(feature = "smol")]
            Some(Handle::Smol(task)) => ready!(Pin::new(task).poll(cx)),
            #[cfg(feature = "async-std")]
            Some(Handle::AsyncStd(task)) => ready!(Pin::new(task).poll(cx)),
            None => None,
        };
        self.0 = None;
        Poll::Ready(output)
    }
}

struct Guarded<F>(Pin<Box<F>>);

impl<F: Future> Future for Guarded<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.0.as_mut();
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::timer::timeout;

    const EACH: &[Executor] = &[
        #[cfg(feature = "smol")]
        Executor::Smol,
        #[cfg(feature = "async-std")]
        Executor::AsyncStd,
    ];

    #[test]
    fn a_task_that_panics_ends_with_nothing_and_the_next_one_runs() {
        for executor in EACH {
            let panics = executor.spawn(async { panic!("for the test") });
            assert_eq!(async_io::block_on(panics), None::<()>);
            assert_eq!(async_io::block_on(executor.spawn(async { 7 })), Some(7));
        }
    }

    #[test]
    fn a_task_goes_on_when_it_is_dropped_and_ends_when_it_is_aborted() {
        for executor in EACH {
            let held = Arc::new(());
            let observed = Arc::downgrade(&held);
            let (sender, receiver) = std::sync::mpsc::channel();
            let task = executor.spawn(async move {
                async_io::Timer::after(Duration::from_millis(10)).await;
                let _ = sender.send(());
            });
            drop(task);
            assert!(receiver.recv_timeout(Duration::from_secs(10)).is_ok());

            let mut task = executor.spawn(async move {
                std::future::pending::<()>().await;
                drop(held);
            });
            task.abort();
            let gone = async {
                while observed.strong_count() > 0 {
                    async_io::Timer::after(Duration::from_millis(1)).await;
                }
            };
            assert!(async_io::block_on(timeout(Duration::from_secs(10), gone)).is_some());
        }
    }

    #[cfg(all(feature = "smol", feature = "async-std"))]
    #[test]
    fn tasks_are_spawned_where_the_task_is_that_spawns_them() {
        let of_smol = smol::block_on(async { Executor::current() });
        assert!(matches!(of_smol, Executor::Smol));
        let of_async_std = async_std::task::block_on(async { Executor::current() });
        assert!(matches!(of_async_std, Executor::AsyncStd));
    }
}
