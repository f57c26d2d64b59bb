/// A spin lock as the fallback. It is correct with a single thread or if threads run on separate
/// cores. If a thread preempts the holder on the same core, it waits forever: such a system has an
/// implementation of `critical-section` and should enable that feature.
pub(crate) struct Lock<T>(spin::Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(spin::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.acquire())
    }

    #[inline]
    fn acquire(&self) -> spin::MutexGuard<'_, T> {
        self.0.try_lock().unwrap_or_else(|| self.wait())
    }

    // Not inlined, unlike the change: the loop would be repeated for each change.
    #[cold]
    #[inline(never)]
    fn wait(&self) -> spin::MutexGuard<'_, T> {
        self.0.lock()
    }

    #[inline]
    pub(crate) fn try_lock<R>(&self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_lock().map(|mut value| change(&mut value))
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}
