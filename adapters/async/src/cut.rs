#[cfg(feature = "http-server")]
mod current;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Ends a task from outside. Clones cut the same.
#[derive(Clone, Debug, Default)]
pub struct Cut(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_cut: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Cut {
    /// Ends what is run by it, now or as soon as it is.
    pub fn cut(&self) {
        Self::cut_all(core::slice::from_ref(self));
    }

    /// Ends what is run by any of them. All are cut before the first is woken, so what one of them
    /// does about it happens when the others are cut as well.
    pub(crate) fn cut_all(cuts: &[Self]) {
        cuts.iter().for_each(|cut| cut.0.is_cut.store(true, Ordering::Release));
        cuts.iter().for_each(Self::wake);
    }

    fn wake(&self) {
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The output of `future`, or `None` if it is cut before.
    pub async fn unless<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|cx| {
            if self.poll(cx.waker()) {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Wake};

    use super::*;

    #[test]
    fn a_future_has_its_output_unless_it_is_cut() {
        let (cut, cx) = (Cut::default(), &mut Context::from_waker(Waker::noop()));
        assert_eq!(pin!(cut.unless(ready(7))).poll(cx), Poll::Ready(Some(7)));
        let mut never = pin!(cut.unless(pending::<()>()));
        assert!(never.as_mut().poll(cx).is_pending());
        cut.cut();
        assert_eq!(never.poll(cx), Poll::Ready(None));
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
}
