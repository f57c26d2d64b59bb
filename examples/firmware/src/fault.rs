//! The end of everything: say why on UART 1, and start anew.

use core::fmt::Write;
use core::panic::PanicInfo;

use cortex_m::peripheral::SCB;
use cortex_m_rt::{ExceptionFrame, exception};

use crate::uart::{self, Report};

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    cortex_m::interrupt::disable();
    // A port that takes bytes never refuses any.
    let _ = writeln!(Report, "{info}");
    SCB::sys_reset()
}

#[exception]
// SAFETY: it touches nothing that what it interrupts could have left half done.
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    let _ = writeln!(Report, "fault at {:#x}", frame.pc());
    SCB::sys_reset()
}

#[exception]
// SAFETY: what is shared with the rest of the program is so in critical sections.
unsafe fn DefaultHandler(interrupt: i16) {
    if !uart::serve(interrupt) {
        panic!("interrupt {interrupt} that nobody asked for");
    }
}
