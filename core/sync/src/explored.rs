//! The lock for exploring schedules with `shuttle`, whose types work only inside an exploration.

use core::sync::atomic::Ordering;
use std::sync::{PoisonError, TryLockError};

use shuttle::sync::Mutex;
use shuttle::sync::atomic::AtomicBool;

/// Includes a flag to access while the lock is held: `shuttle` switches threads only at such
/// accesses, so that other threads find the lock taken.
pub(crate) struct Lock<T>(Mutex<T>, AtomicBool);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value), AtomicBool::new(false))
    }

    pub(crate) fn lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.1.load(Ordering::SeqCst);
        change(&mut value)
    }

    pub(crate) fn try_lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut value = match self.0.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.1.load(Ordering::SeqCst);
        Some(change(&mut value))
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
