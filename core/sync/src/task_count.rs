use crate::atomic::{AtomicUsize, Ordering};

/// A number of running tasks. A waiter may wait until all of them have ended.
///
/// The number and the mark that someone waits are one atomic word, so that both sides agree on
/// which came first: with two words, the last task could miss the mark while the waiter misses its
/// end.
#[derive(Debug, Default)]
pub struct TaskCount(AtomicUsize);

/// The mark that someone waits.
const AWAITED: usize = 1;
/// One task.
const ONE: usize = 2;

impl TaskCount {
    /// Counts a task that begins.
    pub fn begin(&self) {
        self.0.fetch_add(ONE, Ordering::Relaxed);
    }

    /// Counts a task that ends. Returns whether it was the last one, and someone may wait for it:
    /// wake all that have registered.
    #[must_use]
    pub fn end(&self) -> bool {
        // Release: what the task has done is visible to the waiter. Acquire: the registration is
        // visible here.
        self.0.fetch_sub(ONE, Ordering::AcqRel) == ONE | AWAITED
    }

    /// Returns whether tasks run; the caller is then woken when the last one ends. Call it after
    /// each registration of the waker, under the lock under which it is taken.
    #[must_use]
    pub fn await_end(&self) -> bool {
        self.0.fetch_or(AWAITED, Ordering::AcqRel) >= ONE
    }
}
