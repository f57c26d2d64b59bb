use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Stops a task from outside. Clones stop the same task.
#[derive(Clone, Debug, Default)]
pub struct StopHandle(pub(crate) Arc<State>);

#[derive(Debug, Default)]
pub(crate) struct State {
    is_stopped: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl StopHandle {
    /// Stops the task, now or as soon as it runs.
    pub fn stop(&self) {
        Self::stop_all(core::slice::from_ref(self));
    }

    /// Stops the tasks of all handles. All are marked as stopped before the first is woken, so that
    /// a woken task sees the others stopped as well.
    pub(crate) fn stop_all(handles: &[Self]) {
        handles.iter().for_each(|handle| handle.0.is_stopped.store(true, Ordering::Release));
        handles.iter().for_each(Self::wake);
    }

    fn wake(&self) {
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the output of `future`, or `None` if it is stopped first.
    pub async fn until_stopped<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|cx| {
            if self.poll(cx.waker()) {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// Returns whether the handle is stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Acquire)
    }

    /// Returns whether the handle is stopped; if not, registers `waker` to be woken when it is.
    pub fn poll(&self, waker: &Waker) -> bool {
        {
            let mut known = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner);
            if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
                *known = Some(waker.clone());
            }
        }
        self.is_stopped()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Wake};

    use super::*;

    #[test]
    fn a_future_has_its_output_until_it_is_stopped() {
        let (handle, cx) = (StopHandle::default(), &mut Context::from_waker(Waker::noop()));
        assert_eq!(pin!(handle.until_stopped(ready(7))).poll(cx), Poll::Ready(Some(7)));
        let mut never = pin!(handle.until_stopped(pending::<()>()));
        assert!(never.as_mut().poll(cx).is_pending());
        handle.stop();
        assert_eq!(never.poll(cx), Poll::Ready(None));
    }

    #[test]
    fn all_are_stopped_before_one_is_woken() {
        struct Sees(StopHandle, AtomicBool);

        impl Wake for Sees {
            fn wake(self: Arc<Self>) {
                self.1.store(self.0.is_stopped(), Ordering::Relaxed);
            }
        }

        let handles = [StopHandle::default(), StopHandle::default()];
        let sees = Arc::new(Sees(handles[1].clone(), AtomicBool::new(false)));
        assert!(!handles[0].poll(&Waker::from(Arc::clone(&sees))));
        StopHandle::stop_all(&handles);
        assert!(sees.1.load(Ordering::Relaxed));
    }
}
