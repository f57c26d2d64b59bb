//! The stack, its peak use, and the calls on it.

use core::arch::asm;
use core::{iter, ptr};

use cortex_m_rt::STACK_PAINT_VALUE;

unsafe extern "C" {
    /// Linker symbols: the lowest word of the stack, and the address after its highest word.
    static _stack_end: u32;
    static _stack_start: u32;
}

/// Returns the size of the stack in bytes: the RAM that the variables and the heap leave.
pub(crate) fn size() -> usize {
    (&raw const _stack_start).addr() - (&raw const _stack_end).addr()
}

/// Returns the peak number of bytes in use. Unused words still have the value written at startup.
pub(crate) fn peak() -> usize {
    let end = &raw const _stack_end;
    let painted = (0..size() / 4).take_while(|word| {
        // SAFETY: the pointer is within the stack. The word may change at any time, so it is read
        // as volatile.
        unsafe { end.add(*word).read_volatile() == STACK_PAINT_VALUE }
    });
    size() - painted.count() * 4
}

/// Returns the addresses of the calls that are in progress, innermost first.
///
/// On this target each function that calls others stores `r7` and its return address in adjacent
/// words, and sets `r7` to the address of the first.
pub(crate) fn calls() -> impl Iterator<Item = u32> {
    const FRAME_SIZE: usize = size_of::<[u32; 2]>();
    let mut frame: *const [u32; 2];
    // SAFETY: only reads a register.
    unsafe { asm!("mov {}, r7", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    let mut free = (&raw const _stack_end).addr();
    iter::from_fn(move || {
        // Each frame is above the last one. The startup code has no frame.
        let top = (&raw const _stack_start).addr() - FRAME_SIZE;
        if !frame.is_aligned() || !(free..=top).contains(&frame.addr()) {
            return None;
        }
        // SAFETY: the pointer is aligned and within the stack, whose words are initialized.
        let [outer, return_address] = unsafe { frame.read_volatile() };
        free = frame.addr() + FRAME_SIZE;
        frame = ptr::with_exposed_provenance(outer as usize);
        // Within the instruction before, which is the call.
        Some(return_address.wrapping_sub(2))
    })
}
