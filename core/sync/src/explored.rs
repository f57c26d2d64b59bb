//! The lock and the atomics for exploring schedules with `shuttle`.
//!
//! The types of `shuttle` work only inside an exploration. The types here use `shuttle` if they
//! were created inside an exploration, and the ordinary implementation otherwise, so that the
//! feature does not affect other tests.

use alloc::boxed::Box;
use core::cell::Cell;
use core::sync::atomic::Ordering;
use std::sync::{PoisonError, TryLockError};

use crate::parking;

std::thread_local! {
    /// Whether this thread runs an exploration, which runs all of its threads on one OS thread.
    static EXPLORING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `test` under many random but reproducible schedules. Their number is `MCP_SCHEDULES` or a
/// default, divided by the `weight` of one run. A schedule that deadlocks is a failure.
pub fn explore(weight: usize, test: impl Fn() + Send + Sync + 'static) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};

    struct Exploring;
    impl Drop for Exploring {
        fn drop(&mut self) {
            EXPLORING.set(false);
        }
    }

    const SEED: u64 = 0x5eed;
    let schedules = std::env::var("MCP_SCHEDULES").ok();
    let schedules = schedules.map_or(200, |it| it.parse().expect("`MCP_SCHEDULES` is a number"));
    let schedules = (schedules / weight).max(1);
    let test = alloc::sync::Arc::new(test);
    EXPLORING.set(true);
    let _exploring = Exploring;
    let config = || {
        let mut config = shuttle::Config::new();
        // Complete machines run on these stacks, without optimizations.
        config.stack_size = 1024 * 1024;
        // About weak memory ordering: see the decision.
        config.silence_warnings = true;
        config
    };
    let run = alloc::sync::Arc::clone(&test);
    let random = RandomScheduler::new_from_seed(SEED, schedules);
    shuttle::Runner::new(random, config()).run(move || run());
    // A few well-chosen preemptions find bugs that need one long pause.
    let pct = PctScheduler::new_from_seed(SEED, 3, schedules);
    shuttle::Runner::new(pct, config()).run(move || test());
}

pub(crate) struct Lock<T>(Kind<T>);

enum Kind<T> {
    Ordinary(parking::Lock<T>),
    /// Includes a flag to access while the lock is held: `shuttle` switches threads only at such
    /// accesses, so that other threads find the lock taken.
    Explored(Box<(shuttle::sync::Mutex<T>, shuttle::sync::atomic::AtomicBool)>),
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(if EXPLORING.get() {
            let held = shuttle::sync::atomic::AtomicBool::new(false);
            Kind::Explored(Box::new((shuttle::sync::Mutex::new(value), held)))
        } else {
            Kind::Ordinary(parking::Lock::new(value))
        })
    }

    pub(crate) fn lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        match &self.0 {
            Kind::Ordinary(lock) => lock.lock(change),
            Kind::Explored(explored) => {
                let (lock, held) = &**explored;
                let mut value = lock.lock().unwrap_or_else(PoisonError::into_inner);
                held.load(Ordering::SeqCst);
                change(&mut value)
            }
        }
    }

    pub(crate) fn try_lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        match &self.0 {
            Kind::Ordinary(lock) => lock.try_lock(change),
            Kind::Explored(explored) => {
                let (lock, held) = &**explored;
                let mut value = match lock.try_lock() {
                    Ok(value) => value,
                    Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) => return None,
                };
                held.load(Ordering::SeqCst);
                Some(change(&mut value))
            }
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        match &mut self.0 {
            Kind::Ordinary(lock) => lock.get_mut(),
            Kind::Explored(explored) => {
                explored.0.get_mut().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }
}

/// `core::sync::atomic::AtomicBool`, or `shuttle`'s if it was created in an exploration.
#[derive(Debug)]
pub struct AtomicBool(Flag);

#[derive(Debug)]
enum Flag {
    Ordinary(core::sync::atomic::AtomicBool),
    Explored(Box<shuttle::sync::atomic::AtomicBool>),
}

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

impl AtomicBool {
    /// Creates a flag.
    pub fn new(value: bool) -> Self {
        Self(if EXPLORING.get() {
            Flag::Explored(Box::new(shuttle::sync::atomic::AtomicBool::new(value)))
        } else {
            Flag::Ordinary(core::sync::atomic::AtomicBool::new(value))
        })
    }

    /// See `core::sync::atomic::AtomicBool::load`.
    pub fn load(&self, ordering: Ordering) -> bool {
        match &self.0 {
            Flag::Ordinary(value) => value.load(ordering),
            Flag::Explored(value) => value.load(ordering),
        }
    }

    /// See `core::sync::atomic::AtomicBool::store`.
    pub fn store(&self, value: bool, ordering: Ordering) {
        match &self.0 {
            Flag::Ordinary(atomic) => atomic.store(value, ordering),
            Flag::Explored(atomic) => atomic.store(value, ordering),
        }
    }

    /// See `core::sync::atomic::AtomicBool::swap`.
    pub fn swap(&self, value: bool, ordering: Ordering) -> bool {
        match &self.0 {
            Flag::Ordinary(atomic) => atomic.swap(value, ordering),
            Flag::Explored(atomic) => atomic.swap(value, ordering),
        }
    }

    /// See `core::sync::atomic::AtomicBool::fetch_or`.
    pub fn fetch_or(&self, value: bool, ordering: Ordering) -> bool {
        match &self.0 {
            Flag::Ordinary(atomic) => atomic.fetch_or(value, ordering),
            Flag::Explored(atomic) => atomic.fetch_or(value, ordering),
        }
    }
}

/// `core::sync::atomic::AtomicUsize`, or `shuttle`'s if it was created in an exploration.
#[derive(Debug)]
pub struct AtomicUsize(Number);

#[derive(Debug)]
enum Number {
    Ordinary(core::sync::atomic::AtomicUsize),
    Explored(Box<shuttle::sync::atomic::AtomicUsize>),
}

impl Default for AtomicUsize {
    fn default() -> Self {
        Self(if EXPLORING.get() {
            Number::Explored(Box::default())
        } else {
            Number::Ordinary(core::sync::atomic::AtomicUsize::default())
        })
    }
}

impl AtomicUsize {
    /// See `core::sync::atomic::AtomicUsize::fetch_add`.
    pub fn fetch_add(&self, value: usize, ordering: Ordering) -> usize {
        match &self.0 {
            Number::Ordinary(atomic) => atomic.fetch_add(value, ordering),
            Number::Explored(atomic) => atomic.fetch_add(value, ordering),
        }
    }

    /// See `core::sync::atomic::AtomicUsize::fetch_sub`.
    pub fn fetch_sub(&self, value: usize, ordering: Ordering) -> usize {
        match &self.0 {
            Number::Ordinary(atomic) => atomic.fetch_sub(value, ordering),
            Number::Explored(atomic) => atomic.fetch_sub(value, ordering),
        }
    }

    /// See `core::sync::atomic::AtomicUsize::fetch_or`.
    pub fn fetch_or(&self, value: usize, ordering: Ordering) -> usize {
        match &self.0 {
            Number::Ordinary(atomic) => atomic.fetch_or(value, ordering),
            Number::Explored(atomic) => atomic.fetch_or(value, ordering),
        }
    }
}
