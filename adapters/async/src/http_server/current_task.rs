use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::task::Poll;

use crate::StopHandle;

thread_local! {
    /// The handle of the task that this thread is polling.
    static CURRENT: RefCell<Option<StopHandle>> = const { RefCell::new(None) };
}

/// A response cannot abort itself: hyper does not poll a body while the client reads nothing, which
/// is the very reason to abort it.
///
/// A listener [runs](Self::run) each connection, or each HTTP/2 stream, with a stop handle; a
/// [service](crate::http_server::HttpService) called within finds the handle here.
impl StopHandle {
    /// Returns the handle that stops the current task; `None` in a framework with its own tasks.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(|current| current.borrow().clone()).ok()?
    }

    /// Runs `future` until it completes or is stopped.
    pub fn run<F: Future>(self, future: F) -> impl Future<Output = ()> + use<F> {
        // Boxed, since a task would otherwise hold the argument twice while it moves in, and a
        // connection is large.
        let mut future = Box::pin(future);
        poll_fn(move |cx| {
            if self.poll(cx.waker()) {
                return Poll::Ready(());
            }
            let _scope = Scope(CURRENT.replace(Some(self.clone())));
            future.as_mut().poll(cx).map(drop)
        })
    }
}

/// Restores the handle of the outer task when a poll ends, also by a panic.
struct Scope(Option<StopHandle>);

impl Drop for Scope {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use super::*;

    fn poll(future: impl Future) -> bool {
        pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_future_ends_when_it_completes_or_is_aborted() {
        let handle = StopHandle::default();
        assert!(poll(handle.clone().run(ready(7))));
        assert!(!poll(handle.clone().run(pending::<()>())));
        handle.stop();
        assert!(poll(handle.run(pending::<()>())));
    }

    #[test]
    fn each_task_has_its_own_abort_handle() {
        let is_current = |handle: &StopHandle| {
            StopHandle::current().is_some_and(|it| Arc::ptr_eq(&it.0, &handle.0))
        };
        let (outer, inner) = (StopHandle::default(), StopHandle::default());
        poll(outer.clone().run(async {
            assert!(is_current(&outer));
            inner.clone().run(async { assert!(is_current(&inner)) }).await;
            assert!(is_current(&outer));
            let panicking = || poll(inner.clone().run(async { panic!("for the test") }));
            assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
            assert!(is_current(&outer));
        }));
        assert!(StopHandle::current().is_none());
    }
}
