use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::{io, thread};

use mcp_sansio::Instant;
use mcp_sansio_async::Timer;

use super::site::{Locked, Site};
use crate::{Clock, block_on, now};

/// Keeps the deadlines of a site, and passes on what its handlers send, on a thread of its own until
/// the site is gone.
pub(super) fn spawn(site: Weak<Site>) -> io::Result<()> {
    let work = move || {
        // Without descriptors to wait with, there is no server that could have deadlines.
        let _ended = block_on(keep_time(site));
    };
    thread::Builder::new().name("mcp-deadlines".into()).spawn(work).map(drop)
}

async fn keep_time(site: Weak<Site>) {
    let mut clock = Clock::new();
    poll_fn(|cx| {
        loop {
            let Some(deadline) = site.upgrade().map(|site| keep(&site, cx)) else {
                return Poll::Ready(());
            };
            match deadline {
                Some(deadline) if clock.poll_until(cx, deadline).is_ready() => {}
                _ => return Poll::Pending,
            }
        }
    })
    .await;
}

/// Does what is due, and returns when to do so again. Whatever comes nearer, or is sent, from here
/// on wakes the keeper.
fn keep(site: &Arc<Site>, cx: &mut Context<'_>) -> Option<Instant> {
    site.change(|locked| {
        if !locked.keeper.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            locked.keeper = Some(cx.waker().clone());
        }
        let now = now();
        let Locked { server, wakes_at, .. } = locked;
        // Whatever panics is gone, an observer of tasks say; what came after it is still to be taken.
        while catch_unwind(AssertUnwindSafe(|| server.poll_handlers(cx, now))).is_err() {}
        server.handle_timeout(now);
        *wakes_at = server.poll_timeout();
        *wakes_at
    })
}
