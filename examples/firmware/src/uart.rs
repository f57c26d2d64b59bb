//! UART 0: receives by interrupt into a ring buffer, and sends byte by byte.

use core::cell::RefCell;
use core::convert::Infallible;
use core::{fmt, mem};

use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::NVIC;
use critical_section::Mutex;
use embedded_io::{ErrorType, Read, ReadReady, Write};
use heapless::Deque;

use crate::HERTZ;
use crate::register::Register;

/// A PL011 of the LM3S6965.
struct Port {
    data: Register,
    flags: Register,
    whole_divisor: Register,
    fraction_divisor: Register,
    line: Register,
    control: Register,
    mask: Register,
    clear: Register,
}

impl Port {
    /// Returns the port whose registers start at `base`.
    ///
    /// # Safety
    ///
    /// `base` must be the address at which a PL011 has its registers.
    const unsafe fn at(base: usize) -> Self {
        // SAFETY: the offsets are those of the PL011.
        unsafe {
            Self {
                data: Register::at(base),
                flags: Register::at(base + 0x18),
                whole_divisor: Register::at(base + 0x24),
                fraction_divisor: Register::at(base + 0x28),
                line: Register::at(base + 0x2c),
                control: Register::at(base + 0x30),
                mask: Register::at(base + 0x38),
                clear: Register::at(base + 0x44),
            }
        }
    }

    /// Configures 115,200 bits per second, 8 data bits, no parity.
    ///
    /// The port's FIFOs stay disabled: enabling them clears them, and a host that starts QEMU has
    /// already sent its first message by then. Without them, the interrupt must be handled within
    /// the time of one byte, 87 microseconds.
    fn start(&self) {
        const BAUD: u32 = 115_200;
        // The divisor in 64ths, rounded.
        const DIVISOR: u32 = (HERTZ * 8 / BAUD).div_ceil(2);
        const EIGHT_BITS: u32 = 0b11 << 5;
        const ENABLE_BOTH_DIRECTIONS: u32 = 0b11 << 8 | 1;
        self.control.write(0);
        self.whole_divisor.write(DIVISOR / 64);
        self.fraction_divisor.write(DIVISOR % 64);
        self.line.write(EIGHT_BITS);
        self.control.write(ENABLE_BOTH_DIRECTIONS);
    }

    fn has_received(&self) -> bool {
        self.flags.read() & 1 << 4 == 0
    }

    fn send(&self, byte: u8) {
        const TRANSMIT_FULL: u32 = 1 << 5;
        while self.flags.read() & TRANSMIT_FULL != 0 {}
        self.data.write(byte.into());
    }
}

// SAFETY: UART 0 of the LM3S6965.
const SERVER: Port = unsafe { Port::at(0x4000_c000) };
// SAFETY: UART 1.
const REPORT: Port = unsafe { Port::at(0x4000_d000) };

/// The interrupt of UART 0.
#[derive(Clone, Copy)]
struct Interrupt;

// SAFETY: the number is constant and is that of UART 0 on the LM3S6965.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        NUMBER
    }
}

const NUMBER: u16 = 5;

/// The receive interrupt bit.
const RECEIVED: u32 = 1 << 4;

/// The maximum number of bytes removed from the ring with interrupts disabled.
const AT_ONCE: usize = 16;

/// Received bytes that have not been read. 256 bytes arrive in 22 ms at 115,200 bits per second.
static RING: Mutex<RefCell<Ring>> =
    Mutex::new(RefCell::new(Ring { bytes: Deque::new(), ended: false }));

struct Ring {
    bytes: Deque<u8, 256>,
    /// A break was received. The bytes belong to another connection than those before.
    ended: bool,
}

/// Starts both ports.
pub(crate) fn start() -> (Receiver, Sender) {
    REPORT.start();
    SERVER.start();
    SERVER.mask.write(RECEIVED);
    // SAFETY: the interrupt handler is installed, and no critical section relies on this interrupt
    // being masked.
    unsafe { NVIC::unmask(Interrupt) };
    (Receiver(()), Sender(()))
}

/// Handles the interrupt if it is that of UART 0. Returns whether it was.
pub(crate) fn serve(interrupt: i16) -> bool {
    if interrupt != NUMBER.cast_signed() {
        return false;
    }
    critical_section::with(|cs| RING.borrow_ref_mut(cs).receive());
    true
}

impl Ring {
    /// Whether there are bytes for the current connection.
    fn is_readable(&self) -> bool {
        !self.bytes.is_empty() && !self.ended
    }

    /// Moves received bytes into the ring until the ring is full. Any further bytes stay in the port,
    /// with interrupts masked, until the ring is read.
    fn receive(&mut self) {
        const FAULTS: u32 = 0b1111 << 8;
        const BREAK: u32 = 1 << 10;
        SERVER.clear.write(RECEIVED);
        while SERVER.has_received() {
            if self.bytes.is_full() {
                SERVER.mask.write(0);
                return;
            }
            let received = SERVER.data.read();
            if received & BREAK != 0 {
                self.bytes.clear();
                self.ended = true;
                continue;
            }
            // JSON has no zero bytes: a message of which bytes are lost or garbled is refused.
            let byte = if received & FAULTS != 0 { 0 } else { received as u8 };
            // The ring is not full.
            let _ = self.bytes.push_back(byte);
        }
        SERVER.mask.write(RECEIVED);
    }
}

/// The receiving half.
pub(crate) struct Receiver(());

/// The sending half. Blocks while the port is busy. No input is lost, because interrupts continue
/// to receive.
pub(crate) struct Sender(());

impl ErrorType for Receiver {
    type Error = Infallible;
}

impl ErrorType for Sender {
    type Error = Infallible;
}

impl ReadReady for Receiver {
    fn read_ready(&mut self) -> Result<bool, Infallible> {
        Ok(critical_section::with(|cs| RING.borrow_ref(cs).is_readable()))
    }
}

/// Whether there are bytes to read, or a break to [take](take_break).
pub(crate) fn has_received() -> bool {
    critical_section::with(|cs| {
        let ring = RING.borrow_ref(cs);
        ring.is_readable() || ring.ended
    })
}

/// Whether there was a break: the host is gone, and the bytes belong to another connection.
pub(crate) fn take_break() -> bool {
    critical_section::with(|cs| mem::take(&mut RING.borrow_ref_mut(cs).ended))
}

impl Read for Receiver {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Infallible> {
        loop {
            let read = critical_section::with(|cs| {
                let ring = &mut *RING.borrow_ref_mut(cs);
                let mut length = 0;
                while length < buffer.len().min(AT_ONCE)
                    && !ring.ended
                    && let Some(byte) = ring.bytes.pop_front()
                {
                    buffer[length] = byte;
                    length += 1;
                }
                ring.receive();
                (length > 0 || ring.ended || buffer.is_empty()).then_some(length)
            });
            // A serial line only ends with a break.
            if let Some(length) = read {
                return Ok(length);
            }
            cortex_m::asm::wfi();
        }
    }
}

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Self::Error> {
        bytes.iter().for_each(|byte| SERVER.send(*byte));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// UART 1, for the reason of a reset. It is separate from the MCP stream.
pub(crate) struct Report;

impl fmt::Write for Report {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| REPORT.send(byte));
        Ok(())
    }
}
