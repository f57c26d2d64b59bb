use core::cell::RefCell;

use critical_section::Mutex;

/// A critical section as the program defines it. Its holder is not preempted, so an interrupt or a
/// task of higher priority never waits for a holder that cannot run.
pub(crate) struct Lock<T>(Mutex<RefCell<T>>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(RefCell::new(value)))
    }

    #[inline]
    pub(crate) fn lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        critical_section::with(|section| change(&mut self.0.borrow_ref_mut(section)))
    }

    #[inline]
    pub(crate) fn try_lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        critical_section::with(|section| {
            // Only held by code further up on the same stack.
            let mut value = self.0.borrow(section).try_borrow_mut().ok()?;
            Some(change(&mut value))
        })
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().get_mut()
    }
}
