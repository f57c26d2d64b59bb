//! The lamp of the board, its first LED.

use crate::register::Register;

const LED: u32 = 1;

// SAFETY: the LEDs of the board's FPGA.
const LEDS: Register = unsafe { Register::at(0x4002_8000) };

/// Switches the lamp on or off.
pub(crate) fn switch(on: bool) {
    LEDS.write(if on { LED } else { 0 });
}

/// Whether the lamp is on.
pub(crate) fn is_on() -> bool {
    LEDS.read() & LED != 0
}
