//! Registers of the hardware.

/// A register of 32 bits at a fixed address.
#[derive(Clone, Copy)]
pub(crate) struct Register(usize);

impl Register {
    /// The register at `address`.
    ///
    /// # Safety
    ///
    /// There is a register of 32 bits, and reading or writing it changes no memory.
    pub(crate) const unsafe fn at(address: usize) -> Self {
        Self(address)
    }

    pub(crate) fn read(self) -> u32 {
        // SAFETY: there is a register, as whoever made this value has seen to.
        unsafe { (self.0 as *const u32).read_volatile() }
    }

    pub(crate) fn write(self, value: u32) {
        // SAFETY: as for reading.
        unsafe { (self.0 as *mut u32).write_volatile(value) }
    }

    pub(crate) fn set(self, bits: u32) {
        self.write(self.read() | bits);
    }
}
