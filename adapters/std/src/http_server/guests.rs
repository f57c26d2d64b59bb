use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::stop::Stop;

/// The connections of a listener.
#[derive(Clone, Debug, Default)]
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
    pub(super) leave: Stop,
    /// At once.
    pub(super) cut: Stop,
}

/// A connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Stay {
    guests: Guests,
    number: u64,
}

impl Guests {
    // A panic elsewhere leaves nothing half done in here.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn receive(&self) -> (Guest, Stay) {
        let mut inner = self.lock();
        inner.count += 1;
        let (guest, number) = (Guest::default(), inner.count);
        inner.here.insert(number, guest.clone());
        (guest, Stay { guests: self.clone(), number })
    }

    /// Waits until there are fewer than `count`.
    pub(super) fn poll_fewer(&self, count: usize, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.here.len() < count {
            return Poll::Ready(());
        }
        inner.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn all(&self) -> Vec<Guest> {
        self.lock().here.values().cloned().collect()
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut inner = self.guests.lock();
        inner.here.remove(&self.number);
        let waiting = inner.waiting.take();
        drop(inner);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}
