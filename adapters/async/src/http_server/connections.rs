use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::budget::Charge;
use crate::StopHandle;

/// The connections of a listener. Dropping it aborts them.
#[derive(Debug, Default)]
pub(super) struct Connections(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<u64, Connection>,
    count: u64,
    /// The acceptor, while it waits for a connection to end.
    waiting: Option<Waker>,
}

/// Handles that end a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Connection {
    /// Stops it once it has no pending request.
    pub(super) stop: StopHandle,
    /// Stops it immediately.
    pub(super) abort: StopHandle,
}

/// Counts as an open connection until it is dropped.
#[derive(Debug)]
pub struct Permit {
    connections: Arc<Mutex<Inner>>,
    number: u64,
    /// Its place in the share of its client, until it is dropped.
    charge: Option<Charge>,
}

impl Connections {
    /// Adds a new connection.
    pub(super) fn open(&self, charge: Charge) -> (Connection, Permit) {
        let mut inner = lock(&self.0);
        inner.count += 1;
        let (connection, number) = (Connection::default(), inner.count);
        inner.open.insert(number, connection.clone());
        (connection, Permit { connections: Arc::clone(&self.0), number, charge: Some(charge) })
    }

    /// Waits until there are fewer than `count` connections.
    pub(super) fn poll_below(&self, count: usize, cx: &Context<'_>) -> Poll<()> {
        let mut inner = lock(&self.0);
        if inner.open.len() < count {
            return Poll::Ready(());
        }
        inner.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Tells all connections to end once they have no pending request.
    pub(super) fn stop(&self) {
        StopHandle::stop_all(&self.all(|connection| &connection.stop));
    }

    fn all(&self, which: impl Fn(&Connection) -> &StopHandle) -> Vec<StopHandle> {
        lock(&self.0).open.values().map(which).cloned().collect()
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        StopHandle::stop_all(&self.all(|connection| &connection.abort));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // Free before the acceptor looks at it.
        drop(self.charge.take());
        let mut inner = lock(&self.connections);
        inner.open.remove(&self.number);
        let waiting = inner.waiting.take();
        drop(inner);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

// A panic elsewhere leaves no inconsistent state.
fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}
