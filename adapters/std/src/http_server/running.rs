use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use mcp_sansio::handler::{Finished, Ran, Running, Work};
use mcp_sansio::peer::RequestHandle;

use super::site::{Locked, Site};
use crate::{block_on, now};

/// How the work of a handler ended.
#[derive(Debug)]
pub(super) struct Ended<'f> {
    request: RequestHandle,
    /// `None`: it panicked, or there was no thread for it.
    finished: Option<Finished<'f>>,
}

/// A handler that goes on, and whose panics end nothing but itself.
struct Guarded {
    request: RequestHandle,
    running: Running,
}

impl Locked {
    /// Answers a request with what its handler came to.
    pub(super) fn end(&mut self, ended: Ended<'_>) {
        let Ended { request, finished } = ended;
        let now = now();
        let answered = finished.is_some_and(|finished| {
            // With the answer goes what the handler has sent, and an edit of the catalog may panic.
            catch_unwind(AssertUnwindSafe(|| self.server.finish(finished, now))).is_ok()
        });
        if !answered {
            self.server.fail(request, now);
        }
    }
}

/// Runs a handler as far as it goes without a wait. It is put on a thread of its own where it goes
/// on, and so outlives the connection of its request, which legacy clients may come back for.
pub(super) fn begin<'f>(site: &Arc<Site>, work: Work<'f>) -> Option<Ended<'f>> {
    let request = work.handle();
    match catch_unwind(AssertUnwindSafe(|| work.run())) {
        Err(_) => Some(Ended { request, finished: None }),
        Ok(Ran::Done(finished)) => Some(Ended { request, finished: Some(finished) }),
        Ok(Ran::Running(running)) => {
            let mut guarded = Guarded { request, running };
            // Most that are `async` have nothing to wait for. Where this one has, its own thread
            // polls it again, and so learns of what would have woken it.
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(ended) = Pin::new(&mut guarded).poll(&mut cx) {
                return ended;
            }
            site.change(|locked| locked.server.attend(&guarded.running));
            go_on(site, guarded)
        }
    }
}

/// Runs work that came from no new request, on a thread of its own.
pub(super) fn spawn(site: &Arc<Site>, work: Work<'static>) {
    let request = work.handle();
    let theirs = Arc::clone(site);
    let run = move || {
        if let Some(ended) = begin(&theirs, work) {
            theirs.change(|locked| locked.end(ended));
        }
    };
    if site.handlers.run(run).is_err() {
        site.change(|locked| locked.end(Ended { request, finished: None }));
    }
}

/// Puts a handler on a thread of its own; where there is none, it is over.
fn go_on(site: &Arc<Site>, guarded: Guarded) -> Option<Ended<'static>> {
    let request = guarded.request;
    let theirs = Arc::clone(site);
    let run = move || {
        let ended = block_on(guarded).unwrap_or(Some(Ended { request, finished: None }));
        if let Some(ended) = ended {
            theirs.change(|locked| locked.end(ended));
        }
    };
    site.handlers.run(run).err().map(|_| Ended { request, finished: None })
}

impl Future for Guarded {
    /// `None`: nobody waits for it any more.
    type Output = Option<Ended<'static>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let guarded = &mut *self;
        let request = guarded.request;
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut guarded.running).poll(cx)));
        Poll::Ready(match polled {
            Err(_) => Some(Ended { request, finished: None }),
            Ok(polled) => ready!(polled).map(|done| Ended { request, finished: Some(done) }),
        })
    }
}
