//! Timers for handlers. The main loop wakes them.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::poll_fn;
use core::task::{Poll, Waker};
use core::time::Duration;

use mcp_sansio::Instant;

use crate::clock;

/// Deadlines and the tasks that wait for them. Clones share the timers.
#[derive(Clone, Default)]
pub(crate) struct Timers(Rc<RefCell<Vec<(Instant, Waker)>>>);

impl Timers {
    /// Waits for `duration`.
    pub(crate) async fn sleep(&self, duration: Duration) {
        let end = clock::now() + duration;
        poll_fn(|cx| {
            if end <= clock::now() {
                return Poll::Ready(());
            }
            let mut timers = self.0.borrow_mut();
            // A task may be polled many times before its deadline.
            if !timers.iter().any(|(at, waker)| *at == end && waker.will_wake(cx.waker())) {
                timers.push((end, cx.waker().clone()));
            }
            Poll::Pending
        })
        .await;
    }

    /// Wakes the tasks whose deadline has passed.
    pub(crate) fn wake_due(&self, now: Instant) {
        self.0.borrow_mut().retain(|(end, waker)| {
            let waits = *end > now;
            if !waits {
                waker.wake_by_ref();
            }
            waits
        });
    }
}
