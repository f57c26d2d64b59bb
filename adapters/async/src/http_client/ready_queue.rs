use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Queue of ready slots, so that the cost of a wake-up does not depend on the number of idle
/// exchanges.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    slots: VecDeque<usize>,
    task: Option<Waker>,
}

impl ReadyQueue {
    // A panic elsewhere leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the task to wake.
    pub(super) fn register(&self, task: &Waker) {
        let mut inner = self.lock();
        let known = inner.task.as_ref().is_some_and(|known| known.will_wake(task));
        if !known {
            let old = inner.task.replace(task.clone());
            drop(inner);
            drop(old);
        }
    }

    /// Takes the slot that has been ready the longest.
    pub(super) fn next(&self) -> Option<usize> {
        self.lock().slots.pop_front()
    }

    fn push(&self, slot: usize) {
        let task = {
            let mut inner = self.lock();
            inner.slots.push_back(slot);
            inner.task.clone()
        };
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// Queues a slot as ready, once until it is polled.
#[derive(Debug)]
pub(super) struct ExchangeSignal {
    slot: usize,
    is_set: AtomicBool,
    ready: Arc<ReadyQueue>,
}

impl ExchangeSignal {
    pub(super) const fn new(slot: usize, ready: Arc<ReadyQueue>) -> Self {
        Self { slot, is_set: AtomicBool::new(false), ready }
    }

    /// Queues the slot without waking the task, which is already running.
    pub(super) fn set(&self) {
        if !self.is_set.swap(true, Ordering::AcqRel) {
            self.ready.lock().slots.push_back(self.slot);
        }
    }

    /// Queues the slot again after it was taken but not polled.
    pub(super) fn put_back(&self) {
        self.ready.lock().slots.push_back(self.slot);
    }

    /// Clears the signal: a later wake-up queues the slot again.
    pub(super) fn clear(&self) {
        // A swap, not a store, so that everything before an earlier wake-up is visible from here.
        self.is_set.swap(false, Ordering::AcqRel);
    }
}

impl Wake for ExchangeSignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_set.swap(true, Ordering::AcqRel) {
            self.ready.push(self.slot);
        }
    }
}
