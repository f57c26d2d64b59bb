//! Tools and resources, at all revisions, in 16 KiB of RAM in all: a Cortex-M0 without
//! compare-and-swap, the micro:bit with its nRF51822.

#![no_std]
#![no_main]

use core::cell::RefCell;
use core::panic::PanicInfo;

use cortex_m::interrupt::{InterruptNumber, Mutex};
use cortex_m::peripheral::{NVIC, SCB};
use cortex_m_rt::entry;
use heapless::Vec;
use mcp_sansio_firmware_fixed::{Device, Port, Register, serve};

/// The longest message in and out, in bytes.
static MEMORY: Mutex<RefCell<(Vec<u8, 1024>, Vec<u8, 1024>)>> =
    Mutex::new(RefCell::new((Vec::new(), Vec::new())));

/// UART 0 of the nRF51.
struct Uart {
    /// The byte after a fault, which ends a line.
    held: Option<u8>,
}

const BASE: usize = 0x4000_2000;
// SAFETY: the registers of UART 0 of the nRF51.
const START_RECEIVER: Register = unsafe { Register::at(BASE) };
// SAFETY: see above.
const START_SENDER: Register = unsafe { Register::at(BASE + 0x8) };
// SAFETY: see above.
const RECEIVED: Register = unsafe { Register::at(BASE + 0x108) };
// SAFETY: see above.
const SENT: Register = unsafe { Register::at(BASE + 0x11c) };
// SAFETY: see above.
const ENABLE_INTERRUPTS: Register = unsafe { Register::at(BASE + 0x304) };
// SAFETY: see above.
const FAULTS: Register = unsafe { Register::at(BASE + 0x480) };
// SAFETY: see above.
const ENABLE: Register = unsafe { Register::at(BASE + 0x500) };
// SAFETY: see above.
const PIN_OF_SENDER: Register = unsafe { Register::at(BASE + 0x50c) };
// SAFETY: see above.
const PIN_OF_RECEIVER: Register = unsafe { Register::at(BASE + 0x514) };
// SAFETY: see above.
const RECEIVED_BYTE: Register = unsafe { Register::at(BASE + 0x518) };
// SAFETY: see above.
const SENT_BYTE: Register = unsafe { Register::at(BASE + 0x51c) };
// SAFETY: see above.
const BIT_RATE: Register = unsafe { Register::at(BASE + 0x524) };

/// The interrupt of UART 0.
#[derive(Clone, Copy)]
struct Interrupt;

// SAFETY: the number is constant and is that of UART 0 on the nRF51.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        2
    }
}

impl Uart {
    /// Starts the port at 115,200 bits per second. Interrupts stay masked: they only end the sleep.
    fn start() -> Self {
        const ENABLED: u32 = 4;
        const BITS_115_200: u32 = 0x01d7_e000;
        cortex_m::interrupt::disable();
        PIN_OF_SENDER.write(24);
        PIN_OF_RECEIVER.write(25);
        BIT_RATE.write(BITS_115_200);
        ENABLE.write(ENABLED);
        ENABLE_INTERRUPTS.write(1 << 2);
        // SAFETY: interrupts are disabled, so there is no handler that could be called.
        unsafe { NVIC::unmask(Interrupt) };
        START_SENDER.write(1);
        START_RECEIVER.write(1);
        Self { held: None }
    }
}

impl Port for Uart {
    fn receive(&mut self) -> Option<u8> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        if RECEIVED.read() == 0 {
            return None;
        }
        // The event is cleared before the byte is read: there may be another one in the port.
        RECEIVED.write(0);
        let (received, faults) = (RECEIVED_BYTE.read(), FAULTS.read());
        FAULTS.write(faults);
        if faults == 0 {
            return Some(received as u8);
        }
        // A break ends the line: a host that starts again has left the previous one unfinished. The two
        // parts of a line in which a byte was lost or garbled are invalid. The byte of a break is zero.
        self.held = Some(received as u8).filter(|byte| *byte != 0);
        Some(b'\n')
    }

    fn send(&mut self, byte: u8) {
        SENT_BYTE.write(byte.into());
        while SENT.read() == 0 {}
        SENT.write(0);
    }

    fn sleep(&mut self) {
        NVIC::unpend(Interrupt);
        // A byte that arrived in between.
        if RECEIVED.read() == 0 {
            cortex_m::asm::wfi();
        }
    }
}

#[entry]
fn main() -> ! {
    let mut uart = Uart::start();
    cortex_m::interrupt::free(|section| {
        let (line, output) = &mut *MEMORY.borrow(section).borrow_mut();
        serve(Device::new(), &mut uart, line, output)
    })
}

// The host sees that the device starts again.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    SCB::sys_reset()
}
