use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mcp_sansio::peer::RequestHandle;
use mcp_sansio_handlers::{Finished, Ran, Running, Work};

use super::site::{Locked, Site};
use crate::{block_on, now};

/// How the work of a handler ended.
#[derive(Debug)]
pub(super) struct Ended<'f> {
    request: RequestHandle,
    /// `None`: there was no thread for it.
    finished: Option<Finished<'f>>,
}

impl Locked {
    /// Answers a request with what its handler came to.
    pub(super) fn end(&mut self, ended: Ended<'_>) {
        let Ended { request, finished } = ended;
        let now = now();
        let answered = finished.is_some_and(|finished| {
            // The server catches what handlers do; an observer of tasks may still panic.
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
    match work.run() {
        Ran::Done(finished) => Some(Ended { request, finished: Some(finished) }),
        Ran::Running(mut running) => {
            // Most that are `async` have nothing to wait for. Where this one has, its own thread
            // polls it again, and so learns of what would have woken it.
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(finished) = Pin::new(&mut running).poll(&mut cx) {
                return finished.map(|finished| Ended { request, finished: Some(finished) });
            }
            site.change(|locked| locked.server.attend(&running));
            go_on(site, request, running)
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
fn go_on(site: &Arc<Site>, request: RequestHandle, running: Running) -> Option<Ended<'static>> {
    let theirs = Arc::clone(site);
    let run = move || {
        let finished = match block_on(running) {
            Ok(Some(finished)) => Some(finished),
            // Nobody waits for it any more.
            Ok(None) => return,
            // There was nothing to wait with.
            Err(_) => None,
        };
        theirs.change(|locked| locked.end(Ended { request, finished }));
    };
    site.handlers.run(run).err().map(|_| Ended { request, finished: None })
}
