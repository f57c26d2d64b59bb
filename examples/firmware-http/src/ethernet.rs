//! The Ethernet controller of the board, an SMSC LAN9118: frames pass through its FIFOs.

use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use smoltcp::wire::EthernetAddress;

use crate::register::Register;

const BASE: usize = 0x4020_0000;
// SAFETY: the registers of the LAN9118: see its data sheet. Reading a FIFO takes a word from it,
// which affects no memory.
const RECEIVED_DATA: Register = unsafe { Register::at(BASE) };
// SAFETY: see `RECEIVED_DATA`.
const SENT_DATA: Register = unsafe { Register::at(BASE + 0x20) };
// SAFETY: see `RECEIVED_DATA`.
const RECEIVED_STATUS: Register = unsafe { Register::at(BASE + 0x40) };
// SAFETY: see `RECEIVED_DATA`.
const SEND_CONFIGURATION: Register = unsafe { Register::at(BASE + 0x70) };
// SAFETY: see `RECEIVED_DATA`.
const RECEIVED_LEVEL: Register = unsafe { Register::at(BASE + 0x7c) };
// SAFETY: see `RECEIVED_DATA`.
const SENT_LEVEL: Register = unsafe { Register::at(BASE + 0x80) };
// SAFETY: see `RECEIVED_DATA`.
const MAC_COMMAND: Register = unsafe { Register::at(BASE + 0xa4) };
// SAFETY: see `RECEIVED_DATA`.
const MAC_DATA: Register = unsafe { Register::at(BASE + 0xa8) };

/// The longest frame, its header included. Peers are told, so that longer ones are rare; they are
/// dropped.
const FRAME: usize = 602;

/// The controller, with room for one frame in each direction.
pub(crate) struct Ethernet {
    received: [u8; FRAME],
    sent: [u8; FRAME],
}

impl Ethernet {
    pub(crate) const fn new() -> Self {
        Self { received: [0; FRAME], sent: [0; FRAME] }
    }

    /// Starts the controller.
    pub(crate) fn start(address: EthernetAddress) {
        const CONTROL: u32 = 1;
        const ADDRESS_HIGH: u32 = 2;
        const ADDRESS_LOW: u32 = 3;
        const FULL_DUPLEX_BOTH_DIRECTIONS: u32 = 1 << 20 | 0b11 << 2;
        // The driver does not read the transmit status: discard it when its FIFO is full.
        const SEND_WITHOUT_REPORTS: u32 = 0b11 << 1;
        let [a, b, c, d, e, f] = address.0;
        write_mac(ADDRESS_LOW, u32::from_le_bytes([a, b, c, d]));
        write_mac(ADDRESS_HIGH, u32::from_le_bytes([e, f, 0, 0]));
        SEND_CONFIGURATION.write(SEND_WITHOUT_REPORTS);
        write_mac(CONTROL, FULL_DUPLEX_BOTH_DIRECTIONS);
    }

    /// Removes a frame from the FIFO, and returns its length unless it is damaged or too long.
    fn take(&mut self) -> Option<usize> {
        const CHECKSUM: usize = 4;
        const FAULT: u32 = 1 << 15;
        if RECEIVED_LEVEL.read() >> 16 & 0xff == 0 {
            return None;
        }
        let status = RECEIVED_STATUS.read();
        let stored = (status >> 16 & 0x3fff) as usize;
        for word in 0..stored.div_ceil(4) {
            let bytes = RECEIVED_DATA.read().to_le_bytes();
            for (place, byte) in self.received.iter_mut().skip(word * 4).zip(bytes) {
                *place = byte;
            }
        }
        let length = stored.checked_sub(CHECKSUM)?;
        (length <= FRAME && status & FAULT == 0).then_some(length)
    }
}

/// Writes a register of the MAC, which is behind two registers of the controller.
fn write_mac(register: u32, value: u32) {
    const BUSY: u32 = 1 << 31;
    MAC_DATA.write(value);
    MAC_COMMAND.write(BUSY | register);
    while MAC_COMMAND.read() & BUSY != 0 {}
}

/// A frame in its buffer.
pub(crate) struct Received<'d>(&'d [u8]);

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(self.0)
    }
}

/// The buffer for a frame.
pub(crate) struct Sending<'d>(&'d mut [u8; FRAME]);

impl phy::TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        const WHOLE_FRAME: u32 = 0b11 << 12;
        const COMMANDS: usize = 8;
        let frame = &mut self.0[..length];
        let result = fill(frame);
        // Earlier frames are still being sent.
        while ((SENT_LEVEL.read() & 0xffff) as usize) < length + COMMANDS {}
        SENT_DATA.write(WHOLE_FRAME | length as u32);
        SENT_DATA.write(length as u32);
        for chunk in frame.chunks(4) {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            SENT_DATA.write(u32::from_le_bytes(word));
        }
        result
    }
}

impl Device for Ethernet {
    type RxToken<'d> = Received<'d>;
    type TxToken<'d> = Sending<'d>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Sending<'_>)> {
        let length = self.take()?;
        Some((Received(&self.received[..length]), Sending(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME;
        capabilities.max_burst_size = Some(1);
        capabilities
    }
}
