use std::sync::{PoisonError, TryLockError};

/// The lock of the standard library: a thread that waits is parked, so the one that holds it runs.
pub(crate) struct Lock<T>(std::sync::Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    // Poison says that something panicked between two steps of a change. What runs under this lock
    // is this crate's own, and leaves the value whole at each step; so it says nothing.
    #[inline]
    pub(crate) fn lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[inline]
    pub(crate) fn try_lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        match self.0.try_lock() {
            Ok(mut value) => Some(change(&mut value)),
            Err(TryLockError::Poisoned(poisoned)) => Some(change(&mut poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
