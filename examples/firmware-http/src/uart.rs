//! UART 0, for the reason of a reset.

use core::fmt;

use crate::HERTZ;
use crate::register::Register;

const BASE: usize = 0x4000_4000;
// SAFETY: the registers of UART 0, an APB UART of the Cortex-M System Design Kit.
const DATA: Register = unsafe { Register::at(BASE) };
// SAFETY: see `DATA`.
const STATE: Register = unsafe { Register::at(BASE + 0x04) };
// SAFETY: see `DATA`.
const CONTROL: Register = unsafe { Register::at(BASE + 0x08) };
// SAFETY: see `DATA`.
const DIVISOR: Register = unsafe { Register::at(BASE + 0x10) };

/// Starts the port at 115,200 bits per second.
pub(crate) fn start() {
    const SEND: u32 = 1;
    DIVISOR.write(HERTZ / 115_200);
    CONTROL.set(SEND);
}

/// Handles the interrupt if it is that of the port. Returns whether it was: it has none.
pub(crate) const fn serve(_interrupt: i16) -> bool {
    false
}

/// The port.
pub(crate) struct Report;

impl fmt::Write for Report {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const FULL: u32 = 1;
        for byte in text.bytes() {
            while STATE.read() & FULL != 0 {}
            DATA.write(byte.into());
        }
        Ok(())
    }
}
