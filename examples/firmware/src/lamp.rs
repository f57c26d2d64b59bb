//! The lamp of the board, on pin 0 of port F.

use crate::register::Register;

const PIN: u32 = 1;

// SAFETY: the data register of port F. The address bits mask every pin except `PIN`.
const DATA: Register = unsafe { Register::at(0x4002_5000 + (PIN as usize) * 4) };
// SAFETY: the direction register of port F.
const DIRECTION: Register = unsafe { Register::at(0x4002_5400) };
// SAFETY: the digital enable register of port F.
const ENABLE: Register = unsafe { Register::at(0x4002_551c) };

/// Configures the pin as an output.
pub(crate) fn start() {
    DIRECTION.set(PIN);
    ENABLE.set(PIN);
}

/// Switches the lamp on or off.
pub(crate) fn switch(on: bool) {
    DATA.write(if on { PIN } else { 0 });
}

/// Whether the lamp is on.
pub(crate) fn is_on() -> bool {
    DATA.read() & PIN != 0
}
