use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use mcp_sansio::Instant;

use super::shared_server::{ServerState, SharedServer};
use crate::Timer;

/// Handles the deadlines of a shared server, and forwards messages of its handlers, until the
/// server is dropped.
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

/// Performs due work, and returns the next deadline. An earlier deadline or a new message wakes
/// `timer_waker`.
fn advance(shared: &Arc<SharedServer>, cx: &mut Context<'_>) -> Option<Instant> {
    shared.change(|state| {
        if !state.timer_waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            state.timer_waker = Some(cx.waker().clone());
        }
        let now = shared.now();
        let ServerState { server, timer_deadline, .. } = state;
        // A panic, for example in a task observer, consumes its event; the later events remain.
        while catch_unwind(AssertUnwindSafe(|| server.poll_handlers(cx, now))).is_err() {}
        server.handle_timeout(now);
        *timer_deadline = server.poll_timeout();
        *timer_deadline
    })
}
