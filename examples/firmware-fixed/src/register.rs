//! Hardware registers.

use core::marker::PhantomData;

/// A register at a fixed address, which holds a `T`.
#[derive(Clone, Copy, Debug)]
pub struct Register<T = u32>(usize, PhantomData<T>);

impl<T> Register<T> {
    /// Returns the register at `address`.
    ///
    /// # Safety
    ///
    /// `address` must be that of a register of the size of `T`, for which each value is a valid `T`,
    /// and whose reads and writes do not affect memory.
    #[must_use]
    pub const unsafe fn at(address: usize) -> Self {
        Self(address, PhantomData)
    }

    /// Reads the register.
    #[must_use]
    pub fn read(self) -> T {
        // SAFETY: the caller of `at` guarantees that the register exists.
        unsafe { (self.0 as *const T).read_volatile() }
    }

    /// Writes the register.
    pub fn write(self, value: T) {
        // SAFETY: see `read`.
        unsafe { (self.0 as *mut T).write_volatile(value) }
    }
}
