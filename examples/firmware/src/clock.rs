//! The time since startup, counted by `SysTick`.

use core::cell::Cell;

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::exception;
use critical_section::Mutex;
use mcp_sansio::Instant;

use crate::HERTZ;

/// 64 bits, because 32 bits would overflow after seven weeks.
static MILLIS: Mutex<Cell<u64>> = Mutex::new(Cell::new(0));

/// Starts the counter with an interrupt every millisecond.
pub(crate) fn start(mut timer: SYST) {
    timer.set_clock_source(SystClkSource::Core);
    timer.set_reload(HERTZ / 1000 - 1);
    timer.clear_current();
    timer.enable_counter();
    timer.enable_interrupt();
}

/// Returns the current time.
pub(crate) fn now() -> Instant {
    Instant::from_millis(critical_section::with(|cs| MILLIS.borrow(cs).get()))
}

#[exception]
fn SysTick() {
    critical_section::with(|cs| {
        let millis = MILLIS.borrow(cs);
        millis.set(millis.get() + 1);
    });
}
