//! The stack, and the most of it that was ever in use.

use cortex_m_rt::STACK_PAINT_VALUE;

unsafe extern "C" {
    /// The lowest word of the stack, and what comes after its highest: places that the linker names.
    static _stack_end: u32;
    static _stack_start: u32;
}

/// The size of the stack, in bytes: what the variables and the heap leave of the RAM.
pub(crate) fn size() -> usize {
    (&raw const _stack_start).addr() - (&raw const _stack_end).addr()
}

/// The most bytes that were ever in use: the rest has still the paint of the start.
pub(crate) fn peak() -> usize {
    let end = &raw const _stack_end;
    let painted = (0..size() / 4).take_while(|word| {
        // SAFETY: it is a word of the stack. Others may write it at any time, so it is read like
        // a register.
        unsafe { end.add(*word).read_volatile() == STACK_PAINT_VALUE }
    });
    size() - painted.count() * 4
}
