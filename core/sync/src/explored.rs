//! The lock and the atomics of an exploration of schedules by `shuttle`.
//!
//! `shuttle`'s own types work only inside of an exploration. Those here are of `shuttle` where they
//! were made inside of one, and the ordinary ones elsewhere, so that the feature changes nothing
//! for tests that explore nothing.

use alloc::boxed::Box;
use core::cell::Cell;
use core::sync::atomic::Ordering;
use std::sync::{PoisonError, TryLockError};

use crate::parking;

std::thread_local! {
    /// Whether this thread runs an exploration, whose threads are all on it.
    static EXPLORING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `test` under many schedules, which are drawn at random, the same ones each time: as many as
/// `MCP_SCHEDULES` says, or some, divided by the `weight` of one. A schedule under which nothing can
/// go on is a failure.
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
        // Whole machines run on these stacks, without optimisations.
        config.stack_size = 1024 * 1024;
        // Of weak memory: see the decision.
        config.silence_warnings = true;
        config
    };
    let run = alloc::sync::Arc::clone(&test);
    let random = RandomScheduler::new_from_seed(SEED, schedules);
    shuttle::Runner::new(random, config()).run(move || run());
    // Few changes of thread at places that are chosen well find what needs one long pause.
    let pct = PctScheduler::new_from_seed(SEED, 3, schedules);
    shuttle::Runner::new(pct, config()).run(move || test());
}

pub(crate) struct Lock<T>(Kind<T>);

enum Kind<T> {
    Ordinary(parking::Lock<T>),
    /// With something to look at while it is held: only there does `shuttle` change threads, so
    /// others find the lock held.
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

/// `core::sync::atomic::AtomicBool`, or `shuttle`'s where it was made in an exploration.
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
    /// A flag.
    pub fn new(value: bool) -> Self {
        Self(if EXPLORING.get() {
            Flag::Explored(Box::new(shuttle::sync::atomic::AtomicBool::new(value)))
        } else {
            Flag::Ordinary(core::sync::atomic::AtomicBool::new(value))
        })
    }

    /// As that of `core`.
    pub fn load(&self, ordering: Ordering) -> bool {
        match &self.0 {
            Flag::Ordinary(value) => value.load(ordering),
            Flag::Explored(value) => value.load(ordering),
        }
    }

    /// As that of `core`.
    pub fn store(&self, value: bool, ordering: Ordering) {
        match &self.0 {
            Flag::Ordinary(atomic) => atomic.store(value, ordering),
            Flag::Explored(atomic) => atomic.store(value, ordering),
        }
    }

    /// As that of `core`.
    pub fn swap(&self, value: bool, ordering: Ordering) -> bool {
        match &self.0 {
            Flag::Ordinary(atomic) => atomic.swap(value, ordering),
            Flag::Explored(atomic) => atomic.swap(value, ordering),
        }
    }

    /// As that of `core`.
    pub fn fetch_or(&self, value: bool, ordering: Ordering) -> bool {
        match &self.0 {
            Flag::Ordinary(atomic) => atomic.fetch_or(value, ordering),
            Flag::Explored(atomic) => atomic.fetch_or(value, ordering),
        }
    }
}
