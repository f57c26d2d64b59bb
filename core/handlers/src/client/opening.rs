use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use mcp_sansio::peer::CloseReason;
use mcp_sansio_collections::{Key, Slab};
use mcp_sansio_sync::Mutex;

use super::{ConnectionState, Session};

/// The state of a client's connection, with the tasks that wait for a change.
#[derive(Debug)]
pub(crate) struct Opening {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    waiting: Slab<Waker>,
}

#[derive(Clone, Debug)]
enum State {
    Opening,
    Open(Arc<Session>),
    Closed(Option<Arc<Session>>, CloseReason),
}

/// The key of a waiting task.
pub(crate) type WaiterKey = Key;

impl Opening {
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::new(Inner { state: State::Opening, waiting: Slab::new() }) }
    }

    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        self.inner.lock(|inner| match &inner.state {
            State::Open(session) | State::Closed(Some(session), _) => Some(Arc::clone(session)),
            State::Opening | State::Closed(None, _) => None,
        })
    }

    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.inner.lock(|inner| match &inner.state {
            State::Closed(_, reason) => Some(reason.clone()),
            State::Opening | State::Open(_) => None,
        })
    }

    pub(crate) fn opened(&self, session: Arc<Session>) {
        self.change(State::Open(session));
    }

    pub(crate) fn closed(&self, reason: CloseReason) {
        self.change(State::Closed(self.session(), reason));
    }

    /// Changes the state and wakes the waiting tasks, outside of the lock.
    fn change(&self, state: State) {
        let (before, waiting): (State, Vec<Waker>) = self
            .inner
            .lock(|inner| (core::mem::replace(&mut inner.state, state), inner.waiting.take_all()));
        drop(before);
        for waker in waiting {
            waker.wake();
        }
    }

    pub(crate) fn poll(
        &self,
        waiting: &mut Option<WaiterKey>,
        cx: &Context<'_>,
    ) -> Poll<Result<Arc<Session>, CloseReason>> {
        self.wait(waiting, cx, |state| match state {
            State::Open(session) => Some(Ok(Arc::clone(session))),
            State::Closed(_, reason) => Some(Err(reason.clone())),
            State::Opening => None,
        })
    }

    pub(crate) fn poll_closed(
        &self,
        waiting: &mut Option<WaiterKey>,
        cx: &Context<'_>,
    ) -> Poll<CloseReason> {
        self.wait(waiting, cx, |state| match state {
            State::Closed(_, reason) => Some(reason.clone()),
            State::Opening | State::Open(_) => None,
        })
    }

    /// Looks for a state, and stores the waker if it is not reached yet.
    fn wait<T>(
        &self,
        waiting: &mut Option<WaiterKey>,
        cx: &Context<'_>,
        find: impl FnOnce(&State) -> Option<T>,
    ) -> Poll<T> {
        // Wakers are cloned and dropped outside of the lock, because they run foreign code.
        let mut waker = Some(cx.waker().clone());
        let mut old = None;
        let polled = self.inner.lock(|inner| match find(&inner.state) {
            Some(found) => Poll::Ready(found),
            None => {
                old = waiting.take().and_then(|waiting| inner.waiting.remove(waiting));
                *waiting = waker.take().map(|waker| inner.waiting.insert(waker));
                Poll::Pending
            }
        });
        drop((waker, old));
        polled
    }

    pub(crate) fn forget(&self, waiting: WaiterKey) {
        let waker = self.inner.lock(|inner| inner.waiting.remove(waiting));
        drop(waker);
    }
}

// ------------------------------------------------------------------ futures

/// Resolves when a connection is open or closed.
#[must_use = "await it"]
pub(crate) struct OpenedFuture<'c> {
    opening: &'c Opening,
    waiting: Option<WaiterKey>,
}

impl<'c> OpenedFuture<'c> {
    pub(crate) const fn new(opening: &'c Opening) -> Self {
        Self { opening, waiting: None }
    }
}

impl Future for OpenedFuture<'_> {
    type Output = Result<Arc<Session>, CloseReason>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let opening = self.opening;
        opening.poll(&mut self.waiting, cx)
    }
}

impl Drop for OpenedFuture<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting {
            self.opening.forget(waiting);
        }
    }
}

/// Resolves when a connection is closed.
#[must_use = "await it"]
pub(crate) struct ClosedFuture {
    shared: Arc<ConnectionState>,
    waiting: Option<WaiterKey>,
}

impl ClosedFuture {
    pub(crate) fn new(shared: &Arc<ConnectionState>) -> Self {
        Self { shared: Arc::clone(shared), waiting: None }
    }
}

impl Future for ClosedFuture {
    type Output = CloseReason;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CloseReason> {
        let Self { shared, waiting } = self.get_mut();
        shared.opening.poll_closed(waiting, cx)
    }
}

impl Drop for ClosedFuture {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting {
            self.shared.opening.forget(waiting);
        }
    }
}
