//! Clock gating of the peripherals.

use crate::register::Register;

// SAFETY: run-mode clock gating control registers 1 and 2 of the LM3S6965.
const RCGC1: Register = unsafe { Register::at(0x400f_e104) };
// SAFETY: see `RCGC1`.
const RCGC2: Register = unsafe { Register::at(0x400f_e108) };

/// Enables both UARTs, port A with their pins, and port F with the lamp.
pub(crate) fn turn_on() {
    const UARTS: u32 = 0b11;
    const PORTS: u32 = 1 << 5 | 1;
    RCGC1.set(UARTS);
    RCGC2.set(PORTS);
    // The clocks need a few cycles to start; reading the registers back takes longer.
    let _ = (RCGC1.read(), RCGC2.read());
}
