use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mcp_sansio::Instant;
use mcp_sansio::handler::{Finished, Ran, Running, Work};
use mcp_sansio::peer::RequestHandle;

use super::site::{Locked, Site};

/// How the work of a handler ended.
#[derive(Debug)]
pub(super) struct Ended<'f> {
    request: RequestHandle,
    /// `None`: it panicked. The panic hook has reported it.
    finished: Option<Finished<'f>>,
}

/// A handler that goes on, and whose panics end nothing but itself.
struct Guarded {
    request: RequestHandle,
    running: Running,
}

impl Locked {
    /// Answers a request with what its handler came to.
    pub(super) fn end(&mut self, ended: Ended<'_>, now: Instant) {
        let Ended { request, finished } = ended;
        let answered = finished.is_some_and(|finished| {
            // With the answer goes what the handler has sent, and an edit of the catalog may panic.
            catch_unwind(AssertUnwindSafe(|| self.server.finish(finished, now))).is_ok()
        });
        if !answered {
            self.server.fail(request, now);
        }
    }
}

/// Runs a handler as far as it goes without a wait. It is put into a task of its own where it goes
/// on, and so outlives the connection of its request, which legacy clients may come back for.
pub(super) fn begin<'f>(
    site: &Arc<Site>,
    work: Work<'f>,
    cx: &mut Context<'_>,
) -> Option<Ended<'f>> {
    let request = work.handle();
    match catch_unwind(AssertUnwindSafe(|| work.run())) {
        Err(_) => Some(Ended { request, finished: None }),
        Ok(Ran::Done(finished)) => Some(Ended { request, finished: Some(finished) }),
        Ok(Ran::Running(running)) => {
            let mut guarded = Guarded { request, running };
            if let Poll::Ready(ended) = Pin::new(&mut guarded).poll(cx) {
                return ended;
            }
            site.change(|locked| locked.server.attend(&guarded.running));
            site.runtime.spawn(Box::pin(go_on(Arc::clone(site), guarded)));
            None
        }
    }
}

/// Runs work that came from no new request, in the task that this is.
pub(super) async fn run(site: Arc<Site>, work: Work<'static>) {
    let request = work.handle();
    let ended = match catch_unwind(AssertUnwindSafe(|| work.run())) {
        Err(_) => Some(Ended { request, finished: None }),
        Ok(Ran::Done(finished)) => Some(Ended { request, finished: Some(finished) }),
        Ok(Ran::Running(running)) => {
            site.change(|locked| locked.server.attend(&running));
            Guarded { request, running }.await
        }
    };
    if let Some(ended) = ended {
        site.change(|locked| locked.end(ended, site.now()));
    }
}

async fn go_on(site: Arc<Site>, guarded: Guarded) {
    if let Some(ended) = guarded.await {
        site.change(|locked| locked.end(ended, site.now()));
    }
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
