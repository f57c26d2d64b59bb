use std::sync::{PoisonError, TryLockError};

/// The lock of the standard library. Waiting threads are parked, so that the holder can run.
pub(crate) struct Lock<T>(std::sync::Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    // Poison indicates a panic in the middle of a change. Code under this lock belongs to this
    // crate and leaves the value valid after each step, so poison is ignored.
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
