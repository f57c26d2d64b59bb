use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Which slots have news: so that one that moves costs the same however many others rest.
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
    // A panic elsewhere leaves nothing half done in here.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whom to wake.
    pub(super) fn register(&self, task: &Waker) {
        let mut inner = self.lock();
        let known = inner.task.as_ref().is_some_and(|known| known.will_wake(task));
        if !known {
            let old = inner.task.replace(task.clone());
            drop(inner);
            drop(old);
        }
    }

    /// The slot whose news has waited the longest.
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

/// Says that there is news in one slot, once until it is looked at.
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

    /// Sets it, without waking a task that is at work anyway.
    pub(super) fn set(&self) {
        if !self.is_set.swap(true, Ordering::AcqRel) {
            self.ready.lock().slots.push_back(self.slot);
        }
    }

    /// Sets it again after it was looked for and left alone.
    pub(super) fn put_back(&self) {
        self.ready.lock().slots.push_back(self.slot);
    }

    /// Takes note of it: whatever comes from here on is news again.
    pub(super) fn clear(&self) {
        // An exchange, not a store: what was there before any earlier news is seen from here on.
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
