use core::mem;

/// How the packets on a line of bytes are told apart.
///
/// A packet is a line without its line end, followed by its CRC-32 (IEEE, least significant byte
/// first), and encoded so that one byte value appears only between packets. After noise the decoder
/// is in step again at the next such byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketFraming {
    /// Consistent Overhead Byte Stuffing, with 0x00 between packets: one byte more for each 254
    /// bytes, so the length is known beforehand.
    Cobs,
    /// RFC 1055, with 0xC0 before and after a packet: two bytes for each 0xC0 and 0xDB, which ASCII
    /// does not contain.
    Slip,
}

impl PacketFraming {
    const fn delimiter(self) -> u8 {
        match self {
            Self::Cobs => 0,
            Self::Slip => SLIP_END,
        }
    }
}

const SLIP_END: u8 = 0xc0;
const SLIP_ESCAPE: u8 = 0xdb;
const SLIP_ESCAPED_END: u8 = 0xdc;
const SLIP_ESCAPED_ESCAPE: u8 = 0xdd;

/// The state of a CRC-32 computation: all bits are set at the start, and the checksum is its
/// complement.
#[derive(Clone, Copy, Debug)]
struct Checksum(u32);

impl Checksum {
    const START: Self = Self(u32::MAX);

    const fn add(&mut self, byte: u8) {
        self.0 ^= byte as u32;
        self.0 = (self.0 >> 4) ^ CRC_OF_NIBBLES[(self.0 & 15) as usize];
        self.0 = (self.0 >> 4) ^ CRC_OF_NIBBLES[(self.0 & 15) as usize];
    }

    const fn end(self) -> u32 {
        !self.0
    }
}

/// Sixteen entries: a table of all bytes would take 1 KiB of a device's flash.
const CRC_OF_NIBBLES: [u32; 16] = {
    let mut table = [0; 16];
    let mut index = 0;
    while index < table.len() {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 4 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

/// Turns packets into lines for a decoder of lines, such as [`Lines`](super::Lines), byte by byte
/// and without buffering a packet.
///
/// A damaged packet becomes a line with a zero byte. That is not JSON, so it is refused like any
/// garbled line, unless the driver stops at [`damaged`](Self::damaged). Up to one in 2^32 damaged
/// packets is not recognized. A line end within a packet becomes a carriage return, which JSON
/// permits in the same places.
///
/// ```
/// use mcp_sansio::framing::{PacketDecoder, PacketEncoder, PacketFraming};
///
/// let mut encoder = PacketEncoder::new(PacketFraming::Cobs);
/// assert_eq!(encoder.feed(b"{}\n"), 3);
/// assert_eq!(encoder.pending(), [7, b'{', b'}', 0x43, 0xbf, 0xa6, 0xa3, 0]);
///
/// let mut decoder = PacketDecoder::new(PacketFraming::Cobs);
/// let mut lines = Vec::new();
/// for byte in encoder.pending() {
///     lines.extend_from_slice(decoder.decode(*byte));
/// }
/// assert_eq!(lines, b"{}\n");
/// ```
#[derive(Debug)]
pub struct PacketDecoder {
    framing: PacketFraming,
    /// Whether a packet has begun.
    is_within: bool,
    /// With SLIP: whether the last byte was an escape.
    is_escaped: bool,
    /// With COBS: the number of bytes before the next code, and whether a zero stands before that.
    run: u8,
    zero: bool,
    /// Whether the encoding of this packet is wrong.
    is_damaged: bool,
    /// The last bytes, up to four, which may be the checksum.
    held: u32,
    held_count: u8,
    /// Of the bytes before those.
    checksum: Checksum,
    damaged: u32,
    output: [u8; 2],
}

impl PacketDecoder {
    /// Creates a decoder.
    #[must_use]
    pub const fn new(framing: PacketFraming) -> Self {
        Self {
            framing,
            is_within: false,
            is_escaped: false,
            run: 0,
            zero: false,
            is_damaged: false,
            held: 0,
            held_count: 0,
            checksum: Checksum::START,
            damaged: 0,
            output: [0; 2],
        }
    }

    /// Decodes a byte, and returns the bytes of lines that are complete with it, at most two. Of
    /// ten bytes, at least one completes some.
    #[must_use]
    pub fn decode(&mut self, byte: u8) -> &[u8] {
        let length = if byte == self.framing.delimiter() { self.end() } else { self.take(byte) };
        &self.output[..length]
    }

    /// Returns the number of damaged packets until now, up to the maximum of its type.
    #[must_use]
    pub const fn damaged(&self) -> u32 {
        self.damaged
    }

    fn take(&mut self, byte: u8) -> usize {
        let is_first = !mem::replace(&mut self.is_within, true);
        match self.framing {
            PacketFraming::Cobs if is_first || self.run == 0 => {
                let has_zero = !is_first && self.zero;
                (self.run, self.zero) = (byte - 1, byte != u8::MAX);
                if has_zero { self.push(0) } else { 0 }
            }
            PacketFraming::Cobs => {
                self.run -= 1;
                self.push(byte)
            }
            PacketFraming::Slip if mem::take(&mut self.is_escaped) => match byte {
                SLIP_ESCAPED_END => self.push(SLIP_END),
                SLIP_ESCAPED_ESCAPE => self.push(SLIP_ESCAPE),
                _ => {
                    self.is_damaged = true;
                    self.output[0] = 0;
                    1
                }
            },
            PacketFraming::Slip if byte == SLIP_ESCAPE => {
                self.is_escaped = true;
                0
            }
            PacketFraming::Slip => self.push(byte),
        }
    }

    /// Puts a decoded byte behind the held ones, and the first of four into the output.
    fn push(&mut self, byte: u8) -> usize {
        let [first, ..] = self.held.to_le_bytes();
        if self.held_count < 4 {
            self.held |= u32::from(byte) << (8 * self.held_count);
            self.held_count += 1;
            return 0;
        }
        self.held = self.held >> 8 | u32::from(byte) << 24;
        self.checksum.add(first);
        self.output[0] = if first == b'\n' { b'\r' } else { first };
        1
    }

    /// Ends a packet. A blank line stands for the space between two, and is skipped.
    fn end(&mut self) -> usize {
        let is_whole = self.held_count == 4 && self.held == self.checksum.end();
        let is_encoded = self.run == 0 && !self.is_escaped && !self.is_damaged;
        let is_intact = !self.is_within || is_whole && is_encoded;
        *self = Self { damaged: self.damaged, ..Self::new(self.framing) };
        if is_intact {
            self.output[0] = b'\n';
            return 1;
        }
        self.damaged = self.damaged.saturating_add(1);
        self.output = [0, b'\n'];
        2
    }
}

/// The length after which a piece is written. With COBS it is that of the longest block.
const PIECE_LENGTH: usize = 255;

/// A piece, then the last escape, the checksum as two bytes or a block for each of its four, and
/// the delimiter.
const BUFFER_LENGTH: usize = PIECE_LENGTH + 2 + 8 + 1;

/// Turns lines into packets, in pieces of up to 266 bytes.
///
/// [`feed`](Self::feed) it lines, write what is [`pending`](Self::pending), and call
/// [`consume`](Self::consume) with the number of bytes written, until nothing is left of either.
/// [`PacketDecoder`] shows an example.
#[derive(Debug)]
pub struct PacketEncoder {
    framing: PacketFraming,
    /// Whether the packet of the current line has begun.
    is_within: bool,
    checksum: Checksum,
    buffer: [u8; BUFFER_LENGTH],
    /// The pending bytes are `start..ready`. With COBS a block follows them up to `end`.
    start: usize,
    ready: usize,
    end: usize,
}

impl PacketEncoder {
    /// Creates an encoder.
    #[must_use]
    pub const fn new(framing: PacketFraming) -> Self {
        Self {
            framing,
            is_within: false,
            checksum: Checksum::START,
            buffer: [0; BUFFER_LENGTH],
            start: 0,
            ready: 0,
            end: 0,
        }
    }

    /// Encodes bytes of lines up to the end of a piece or a packet, and returns their number: zero
    /// only if there are none or some are [pending](Self::pending). A packet is complete with the
    /// line end.
    #[must_use]
    pub fn feed(&mut self, lines: &[u8]) -> usize {
        let mut taken = 0;
        for byte in lines {
            if self.ready > 0 || self.end >= PIECE_LENGTH {
                break;
            }
            taken += 1;
            self.start_packet();
            if *byte == b'\n' {
                self.finish_packet();
            } else {
                self.checksum.add(*byte);
                self.push(*byte);
            }
        }
        if self.framing == PacketFraming::Slip {
            self.ready = self.end;
        }
        taken
    }

    /// Returns the bytes to write.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        &self.buffer[self.start..self.ready]
    }

    /// Removes the first `count` pending bytes, which were written; a larger `count` removes all.
    pub fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.ready);
        if self.start == self.ready {
            self.buffer.copy_within(self.ready..self.end, 0);
            (self.start, self.ready, self.end) = (0, 0, self.end - self.ready);
        }
    }

    fn start_packet(&mut self) {
        if mem::replace(&mut self.is_within, true) {
            return;
        }
        match self.framing {
            PacketFraming::Cobs => self.end = self.ready + 1,
            // It ends what noise began.
            PacketFraming::Slip => self.write(SLIP_END),
        }
    }

    fn finish_packet(&mut self) {
        for byte in self.checksum.end().to_le_bytes() {
            self.push(byte);
        }
        if self.framing == PacketFraming::Cobs {
            self.finish_block();
            self.end = self.ready;
        }
        self.write(self.framing.delimiter());
        self.ready = self.end;
        self.is_within = false;
        self.checksum = Checksum::START;
    }

    fn push(&mut self, byte: u8) {
        match (self.framing, byte) {
            (PacketFraming::Cobs, 0) => self.finish_block(),
            (PacketFraming::Cobs, _) => {
                self.write(byte);
                if self.end - self.ready == PIECE_LENGTH {
                    self.finish_block();
                }
            }
            (PacketFraming::Slip, SLIP_END) => {
                self.write(SLIP_ESCAPE);
                self.write(SLIP_ESCAPED_END);
            }
            (PacketFraming::Slip, SLIP_ESCAPE) => {
                self.write(SLIP_ESCAPE);
                self.write(SLIP_ESCAPED_ESCAPE);
            }
            (PacketFraming::Slip, _) => self.write(byte),
        }
    }

    /// Completes a block of COBS, which begins with its length, and starts the next one. A block
    /// that is shorter than the longest stands for a zero after it.
    fn finish_block(&mut self) {
        self.buffer[self.ready] = (self.end - self.ready) as u8;
        self.ready = self.end;
        self.end += 1;
    }

    fn write(&mut self, byte: u8) {
        self.buffer[self.end] = byte;
        self.end += 1;
    }
}
