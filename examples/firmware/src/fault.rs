//! Fatal errors: report the reason on UART 1 and reset the device.

use core::fmt::Write;
use core::panic::PanicInfo;

use cortex_m::peripheral::SCB;
use cortex_m_rt::{ExceptionFrame, exception};

use crate::stack;
use crate::uart::{self, Report};

// Reports the addresses of the calls that led to the panic, not its message and its location: the
// texts, the code that formats them, and the locations of all panics would take ten kilobytes of
// flash.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    cortex_m::interrupt::disable();
    // Writing to the port cannot fail.
    let _ = writeln!(Report, "panic");
    for address in stack::calls() {
        let _ = writeln!(Report, "{address:#x}");
    }
    SCB::sys_reset()
}

#[exception]
// SAFETY: the handler accesses no state that the interrupted code could have left half-modified.
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    let _ = writeln!(Report, "fault at {:#x}", frame.pc());
    SCB::sys_reset()
}

#[exception]
// SAFETY: all state shared with the rest of the program is accessed in critical sections.
unsafe fn DefaultHandler(interrupt: i16) {
    if !uart::serve(interrupt) {
        panic!("unexpected interrupt {interrupt}");
    }
}
