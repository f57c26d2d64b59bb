//! Hardware registers.

/// A 32-bit register at a fixed address.
#[derive(Clone, Copy, Debug)]
pub struct Register(usize);

impl Register {
    /// Returns the register at `address`.
    ///
    /// # Safety
    ///
    /// `address` must be that of a 32-bit register whose reads and writes do not affect memory.
    #[must_use]
    pub const unsafe fn at(address: usize) -> Self {
        Self(address)
    }

    /// Reads the register.
    #[must_use]
    pub fn read(self) -> u32 {
        // SAFETY: the caller of `at` guarantees that the register exists.
        unsafe { (self.0 as *const u32).read_volatile() }
    }

    /// Writes the register.
    pub fn write(self, value: u32) {
        // SAFETY: see `read`.
        unsafe { (self.0 as *mut u32).write_volatile(value) }
    }
}
