//! The stack, and its peak use.

/// What each word of the stack holds at startup, as `cortex-m-rt` writes it.
pub const PAINT: u32 = 0xcccc_cccc;

unsafe extern "C" {
    /// Linker symbols: the lowest word of the stack, and the address after its highest word.
    static _stack_end: u32;
    static _stack_start: u32;
}

/// Returns the size of the stack in bytes: the RAM that the variables leave.
pub(crate) fn size() -> usize {
    (&raw const _stack_start).addr() - (&raw const _stack_end).addr()
}

/// Returns the peak number of bytes in use. Unused words still have the value written at startup.
pub(crate) fn peak() -> usize {
    let end = &raw const _stack_end;
    let painted = (0..size() / 4).take_while(|word| {
        // SAFETY: the pointer is within the stack. The word may change at any time, so it is read
        // as volatile.
        unsafe { end.add(*word).read_volatile() == PAINT }
    });
    size() - painted.count() * 4
}
