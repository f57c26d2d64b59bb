//! The lock, atomics and reference counts of `mcp-sansio`.
//!
//! The implementation of the lock depends on the platform: see `docs/decisions/0022-one-lock.md`.
//!
//! | Feature | Lock | Waits by |
//! | --- | --- | --- |
//! | `std` | `std::sync::Mutex` | parking the thread |
//! | `critical-section` without `std` | a critical section | masking interrupts |
//! | neither | a spin lock | trying again |
//!
//! Features are additive: all implementations behave the same except for how they wait.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

#[cfg(target_has_atomic = "ptr")]
extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

#[cfg(shuttle)]
mod explored;
#[cfg(all(feature = "critical-section", not(feature = "std")))]
mod masking;
#[cfg(all(feature = "std", not(shuttle)))]
mod parking;
#[cfg(not(any(feature = "std", feature = "critical-section")))]
mod spinning;
#[cfg(target_has_atomic = "ptr")]
mod task_count;

#[cfg(shuttle)]
use explored as backend;
#[cfg(all(feature = "critical-section", not(feature = "std")))]
use masking as backend;
#[cfg(all(feature = "std", not(shuttle)))]
use parking as backend;
#[cfg(not(any(feature = "std", feature = "critical-section")))]
use spinning as backend;

use core::fmt;

/// Shared ownership: `alloc::sync::Arc`, or the `portable-atomic` equivalent if the target has no
/// compare-and-swap.
#[cfg(target_has_atomic = "ptr")]
pub use alloc::sync::Arc;
#[cfg(not(target_has_atomic = "ptr"))]
pub use portable_atomic_util::Arc;

#[cfg(target_has_atomic = "ptr")]
pub use task_count::TaskCount;

/// Atomics, replaced when exploring schedules.
pub mod atomic {
    #[cfg(not(shuttle))]
    pub use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    #[cfg(shuttle)]
    pub use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
}

/// A lock that is held only briefly, for a push, a pop or an assignment.
///
/// Code under the lock belongs to this project and is short: it runs no wakers, handlers or
/// destructors of other crates, and takes no second lock. So it never waits long or panics, and a
/// critical section suffices as implementation. The only exceptions are the sink of a recording over
/// HTTP and the function that reads a connection of several servers, which must be fast.
/// [`try_lock`](Self::try_lock) never waits on a single core, so an interrupt may call it.
pub struct Mutex<T>(backend::Lock<T>);

impl<T> Mutex<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> Self {
        Self(backend::Lock::new(value))
    }

    /// Waits for the lock and runs `change` under it.
    #[inline]
    pub fn lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        self.0.lock(change)
    }

    /// Runs `change` under the lock, unless it is already taken.
    #[inline]
    pub fn try_lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_lock(change)
    }

    /// Returns the value of a lock that is not shared.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for Mutex<T> {
    /// Does not take the lock, so that formatting never waits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_cannot_be_taken_again() {
        let mutex = Mutex::new(1);
        let inner = mutex.lock(|value| {
            *value += 1;
            mutex.try_lock(|_| ())
        });
        assert_eq!((inner, mutex.try_lock(|value| *value)), (None, Some(2)));
    }

    #[test]
    fn a_panic_under_the_lock_leaves_it_free() {
        let mutex = Mutex::new(1);
        let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            mutex.lock(|value| {
                *value = 2;
                panic!("under the lock");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(mutex.lock(|value| *value), 2);
        assert_eq!(mutex.try_lock(|value| *value), Some(2));
    }

    #[test]
    fn waiting_threads_get_the_lock_one_at_a_time() {
        const TIMES: usize = 1000;
        let mutex = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..TIMES).for_each(|_| mutex.lock(|value| *value += 1)));
            }
        });
        assert_eq!(mutex.lock(|value| *value), 4 * TIMES);
    }
}
