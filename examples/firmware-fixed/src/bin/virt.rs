//! Tools and resources, at all revisions, in 16 KiB of RAM in all: a RISC-V, RV32IMAC, the machine virt
//! of QEMU.

#![no_std]
#![no_main]

use core::mem;
use core::panic::PanicInfo;

use heapless::Vec;
use mcp_sansio_firmware_fixed::{Device, Port, Register, serve};

// A check for the host cannot assemble it.
#[cfg(target_arch = "riscv32")]
core::arch::global_asm!(
    include_str!("../../boards/virt/start.s"),
    PAINT = const mcp_sansio_firmware_fixed::PAINT,
);

unsafe extern "C" {
    /// Sleeps until an interrupt is pending.
    safe fn wait();
}

/// UART 0, a 16550.
struct Uart {
    /// The faults of the byte that was not yet read.
    faults: u8,
}

const UART: usize = 0x1000_0000;
// SAFETY: the registers of the UART are bytes. This one is read for the received byte, and written to
// send one.
const DATA: Register<u8> = unsafe { Register::at(UART) };
// SAFETY: see above.
const ENABLE_INTERRUPTS: Register<u8> = unsafe { Register::at(UART + 1) };
// SAFETY: see above.
const STATUS: Register<u8> = unsafe { Register::at(UART + 5) };

const PLIC: usize = 0x0c00_0000;
/// The interrupt of the UART.
const SOURCE: usize = 10;
// SAFETY: the registers of the interrupt controller: the priority of the source.
const PRIORITY: Register = unsafe { Register::at(PLIC + 4 * SOURCE) };
// SAFETY: the sources that are enabled, a bit each, for machine mode of the first processor.
const ENABLED_SOURCES: Register = unsafe { Register::at(PLIC + 0x2000) };
// SAFETY: read for the pending source, and written to let it be pending again.
const CLAIM: Register = unsafe { Register::at(PLIC + 0x20_0004) };

// SAFETY: the test device of QEMU, which ends or resets the machine.
const TEST: Register = unsafe { Register::at(0x10_0000) };

const RECEIVED: u8 = 1;

impl Uart {
    /// Starts the port with the bit rate that it has. Interrupts stay masked: they only end the sleep.
    ///
    /// Its queues stay disabled: to enable them would lose a byte that has arrived.
    fn start() -> Self {
        ENABLE_INTERRUPTS.write(1);
        PRIORITY.write(1);
        ENABLED_SOURCES.write(1 << SOURCE);
        Self { faults: 0 }
    }

    /// Reads the status, whose report of faults is lost with that.
    fn status(&mut self) -> u8 {
        const FAULTS: u8 = 0b1111 << 1;
        let status = STATUS.read();
        self.faults |= status & FAULTS;
        status
    }
}

impl Port for Uart {
    fn receive(&mut self) -> Option<u8> {
        const BREAK: u8 = 1 << 4;
        if self.status() & RECEIVED == 0 {
            return None;
        }
        // A break ends the line: a host that starts again has left the previous one unfinished.
        // Another fault makes the line invalid: JSON has no zero bytes.
        let received = DATA.read();
        Some(match mem::take(&mut self.faults) {
            0 => received,
            faults if faults & BREAK != 0 => b'\n',
            _ => 0,
        })
    }

    fn send(&mut self, byte: u8) {
        const SENT: u8 = 1 << 5;
        while self.status() & SENT == 0 {}
        DATA.write(byte);
    }

    fn sleep(&mut self) {
        CLAIM.write(CLAIM.read());
        // A byte that arrived in between.
        if self.status() & RECEIVED == 0 {
            wait();
        }
    }
}

/// The longest message in and out, in bytes.
static mut MEMORY: (Vec<u8, 1024>, Vec<u8, 1024>) = (Vec::new(), Vec::new());

/// Called once, by the startup.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let memory = &raw mut MEMORY;
    // SAFETY: nothing else uses the memory, and this function runs once.
    let (line, output) = unsafe { &mut *memory };
    serve(Device::new(), &mut Uart::start(), line, output)
}

/// Resets the machine. The host sees that the device starts again.
#[unsafe(no_mangle)]
extern "C" fn reset() -> ! {
    const RESET: u32 = 0x7777;
    TEST.write(RESET);
    loop {
        wait();
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    reset()
}
