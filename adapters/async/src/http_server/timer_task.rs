use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use mcp_sansio::Instant;

use super::shared_server::{ServerState, SharedServer};
use crate::Timer;

/// Keeps the deadlines of a shared server, and passes on what its handlers send, until it is gone.
pub(super) async fn run(shared: Weak<SharedServer>, mut timer: Box<dyn Timer + Send>) {
    poll_fn(|cx| {
        loop {
            let Some(deadline) = shared.upgrade().map(|shared| advance(&shared, cx)) else {
                return Poll::Ready(());
            };
            match deadline {
                Some(deadline) if timer.poll_until(cx, deadline).is_ready() => {}
                _ => return Poll::Pending,
            }
        }
    })
    .await;
}

/// Does what is due, and returns when to do so again. Whatever comes nearer, or is sent, from here
/// on wakes the timer_waker.
fn advance(shared: &Arc<SharedServer>, cx: &mut Context<'_>) -> Option<Instant> {
    shared.change(|state| {
        if !state.timer_waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            state.timer_waker = Some(cx.waker().clone());
        }
        let now = shared.now();
        let ServerState { server, timer_deadline, .. } = state;
        // Whatever panics is gone, an observer of tasks say; what came after it is still to be taken.
        while catch_unwind(AssertUnwindSafe(|| server.poll_handlers(cx, now))).is_err() {}
        server.handle_timeout(now);
        *timer_deadline = server.poll_timeout();
        *timer_deadline
    })
}
