//! Tools alone, at the two newest revisions, in 64 KiB of flash and 12 KiB of RAM in all: a
//! Cortex-M3, the board lm3s6965evb of QEMU.

#![no_std]
#![no_main]

use core::cell::RefCell;
use core::panic::PanicInfo;

use cortex_m::interrupt::{InterruptNumber, Mutex};
use cortex_m::peripheral::{NVIC, SCB};
use cortex_m_rt::entry;
use heapless::Vec;
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_firmware_fixed::{
    Device, Port, Register, call_memory, read_sensor, serve, switch_lamp,
};
use mcp_sansio_fixed::{Service, Tool};

struct Tools(Device);

impl AsMut<Device> for Tools {
    fn as_mut(&mut self) -> &mut Device {
        &mut self.0
    }
}

impl Service for Tools {
    const NAME: &'static str = "thermometer";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const REVISIONS: Revisions = Revisions::since(Revision::V2025_11_25);
    const TOOLS: &'static [Tool<Self>] = &[
        Tool::new("read_sensor", r#"{"type":"object"}"#, read_sensor)
            .description("Reads the thermometer.")
            .annotations(r#"{"readOnlyHint":true}"#),
        Tool::new(
            "switch_lamp",
            r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#,
            switch_lamp,
        )
        .description("Switches the lamp."),
        Tool::new("memory", r#"{"type":"object"}"#, call_memory)
            .description("The peak use of the stack.")
            .annotations(r#"{"readOnlyHint":true}"#),
    ];
}

/// The longest message in and out, in bytes.
static MEMORY: Mutex<RefCell<(Vec<u8, 1024>, Vec<u8, 1024>)>> =
    Mutex::new(RefCell::new((Vec::new(), Vec::new())));

/// UART 0, a PL011.
struct Uart;

// SAFETY: the registers of UART 0 of the LM3S6965.
const DATA: Register = unsafe { Register::at(0x4000_c000) };
// SAFETY: see above.
const FLAGS: Register = unsafe { Register::at(0x4000_c018) };
// SAFETY: see above.
const CONTROL: Register = unsafe { Register::at(0x4000_c030) };
// SAFETY: see above.
const MASK: Register = unsafe { Register::at(0x4000_c038) };
// SAFETY: see above.
const CLEAR: Register = unsafe { Register::at(0x4000_c044) };
// SAFETY: the clock gates of the UARTs.
const CLOCKS: Register = unsafe { Register::at(0x400f_e104) };

const RECEIVED: u32 = 1 << 4;

/// The interrupt of UART 0.
#[derive(Clone, Copy)]
struct Interrupt;

// SAFETY: the number is constant and is that of UART 0 on the LM3S6965.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        5
    }
}

impl Uart {
    /// Starts the port with the bit rate that the boot loader has set. Interrupts stay masked: they
    /// only end the sleep.
    fn start() -> Self {
        const ENABLE_BOTH_DIRECTIONS: u32 = 0b11 << 8 | 1;
        cortex_m::interrupt::disable();
        CLOCKS.write(CLOCKS.read() | 1);
        CONTROL.write(ENABLE_BOTH_DIRECTIONS);
        MASK.write(RECEIVED);
        // SAFETY: interrupts are disabled, so there is no handler that could be called.
        unsafe { NVIC::unmask(Interrupt) };
        Self
    }
}

impl Port for Uart {
    fn receive(&mut self) -> Option<u8> {
        const EMPTY: u32 = 1 << 4;
        const BREAK: u32 = 1 << 10;
        const FAULTS: u32 = 0b1111 << 8;
        if FLAGS.read() & EMPTY != 0 {
            return None;
        }
        // A break ends the line: a host that starts again has left the previous one unfinished.
        // Another fault makes the line invalid: JSON has no zero bytes.
        let received = DATA.read();
        Some(match received & FAULTS {
            0 => received as u8,
            faults if faults & BREAK != 0 => b'\n',
            _ => 0,
        })
    }

    fn send(&mut self, byte: u8) {
        const FULL: u32 = 1 << 5;
        while FLAGS.read() & FULL != 0 {}
        DATA.write(byte.into());
    }

    fn sleep(&mut self) {
        CLEAR.write(RECEIVED);
        NVIC::unpend(Interrupt);
        // A byte that arrived in between.
        if FLAGS.read() & 1 << 4 != 0 {
            cortex_m::asm::wfi();
        }
    }
}

#[entry]
fn main() -> ! {
    let mut uart = Uart::start();
    cortex_m::interrupt::free(|section| {
        let (line, output) = &mut *MEMORY.borrow(section).borrow_mut();
        serve(Tools(Device::new()), &mut uart, line, output)
    })
}

// The host sees that the device starts again.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    SCB::sys_reset()
}
