use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_sansio_async::http_server::Cut;

/// The connections of a listener. Dropped, it cuts them off.
#[derive(Debug, Default)]
pub(super) struct Guests(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    here: BTreeMap<u64, Guest>,
    count: u64,
    /// Who waits for one to leave.
    waiting: Option<Waker>,
}

/// How a connection is told to end.
#[derive(Clone, Debug, Default)]
pub(super) struct Guest {
    /// When there is no request under way.
    pub(super) leave: Cut,
    /// At once.
    pub(super) cut: Cut,
}

/// A connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Stay {
    guests: Arc<Mutex<Inner>>,
    number: u64,
}

impl Guests {
    pub(super) fn receive(&self) -> (Guest, Stay) {
        let mut inner = lock(&self.0);
        inner.count += 1;
        let (guest, number) = (Guest::default(), inner.count);
        inner.here.insert(number, guest.clone());
        (guest, Stay { guests: Arc::clone(&self.0), number })
    }

    /// Waits until there are fewer than `count`.
    pub(super) fn poll_fewer(&self, count: usize, cx: &Context<'_>) -> Poll<()> {
        let mut inner = lock(&self.0);
        if inner.here.len() < count {
            return Poll::Ready(());
        }
        inner.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Tells all of them to leave.
    pub(super) fn dismiss(&self) {
        self.all().iter().for_each(|guest| guest.leave.cut());
    }

    fn all(&self) -> Vec<Guest> {
        lock(&self.0).here.values().cloned().collect()
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        self.all().iter().for_each(|guest| guest.cut.cut());
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut inner = lock(&self.guests);
        inner.here.remove(&self.number);
        let waiting = inner.waiting.take();
        drop(inner);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

// A panic elsewhere leaves nothing half done in here.
fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}
