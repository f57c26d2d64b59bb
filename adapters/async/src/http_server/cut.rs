use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Ends the task that sends a response from outside. A response that is to be broken off cannot do
/// so by itself: hyper asks a body for nothing as long as the client takes nothing, and a client
/// that takes nothing is the reason.
///
/// A listener has each connection, or each stream of HTTP/2, [run](Self::run) by one; a
/// [service](super::HttpService) that is called in there knows it by itself. Clones cut the same.
#[derive(Clone, Debug, Default)]
pub struct Cut(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_cut: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

thread_local! {
    /// What ends the task that this thread is polling.
    static CURRENT: RefCell<Option<Cut>> = const { RefCell::new(None) };
}

impl Cut {
    /// What ends the task that this is; `None` in a framework that has tasks of its own.
    pub(super) fn current() -> Option<Self> {
        CURRENT.try_with(|current| current.borrow().clone()).ok()?
    }

    /// Ends what is run by it, now or as soon as it is.
    pub fn cut(&self) {
        Self::cut_all(core::slice::from_ref(self));
    }

    /// Ends what is run by any of them. All are cut before the first is woken, so what one of them
    /// does about it happens when the others are cut as well.
    pub(super) fn cut_all(cuts: &[Self]) {
        cuts.iter().for_each(|cut| cut.0.is_cut.store(true, Ordering::Release));
        cuts.iter().for_each(Self::wake);
    }

    fn wake(&self) {
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Runs `future` until it is done or cut off.
    pub fn run<F: Future>(self, future: F) -> impl Future<Output = ()> + use<F> {
        // In a place of its own: what takes an argument over into a task holds it there twice, and
        // a connection is large.
        let mut future = Box::pin(future);
        poll_fn(move |cx| {
            if self.poll(cx.waker()) {
                return Poll::Ready(());
            }
            let _scope = Scope(CURRENT.replace(Some(self.clone())));
            future.as_mut().poll(cx).map(drop)
        })
    }

    /// Whether it is cut.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.0.is_cut.load(Ordering::Acquire)
    }

    /// Whether it is cut; whoever asks is woken when it is.
    pub fn poll(&self, waker: &Waker) -> bool {
        {
            let mut known = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner);
            if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
                *known = Some(waker.clone());
            }
        }
        self.is_cut()
    }
}

/// Sets back what ends the current task, however its poll ends.
struct Scope(Option<Cut>);

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
    use std::task::{Context, Wake};

    use super::*;

    fn poll(future: impl Future) -> bool {
        pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn what_is_run_ends_by_itself_or_when_it_is_cut() {
        let cut = Cut::default();
        assert!(poll(cut.clone().run(ready(7))));
        assert!(!poll(cut.clone().run(pending::<()>())));
        cut.cut();
        assert!(poll(cut.run(pending::<()>())));
    }

    #[test]
    fn all_are_cut_before_one_is_woken() {
        struct Sees(Cut, AtomicBool);

        impl Wake for Sees {
            fn wake(self: Arc<Self>) {
                self.1.store(self.0.is_cut(), Ordering::Relaxed);
            }
        }

        let cuts = [Cut::default(), Cut::default()];
        let sees = Arc::new(Sees(cuts[1].clone(), AtomicBool::new(false)));
        assert!(!cuts[0].poll(&Waker::from(Arc::clone(&sees))));
        Cut::cut_all(&cuts);
        assert!(sees.1.load(Ordering::Relaxed));
    }

    #[test]
    fn each_task_knows_its_own() {
        let is_current = |cut: &Cut| Cut::current().is_some_and(|it| Arc::ptr_eq(&it.0, &cut.0));
        let (outer, inner) = (Cut::default(), Cut::default());
        poll(outer.clone().run(async {
            assert!(is_current(&outer));
            inner.clone().run(async { assert!(is_current(&inner)) }).await;
            assert!(is_current(&outer));
            let panicking = || poll(inner.clone().run(async { panic!("for the test") }));
            assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
            assert!(is_current(&outer));
        }));
        assert!(Cut::current().is_none());
    }
}
