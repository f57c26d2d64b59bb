//! The packets on the line, and how the reader finds them among damaged bytes.

use crc::{CRC_32_ISO_HDLC, Crc};

/// The maximum payload of a packet in bytes. Small, because packets are retransmitted as a whole.
pub const PAYLOAD_MAX: usize = 128;

/// The first byte of a packet. It may also occur elsewhere; the checksum decides.
const MARKER: u8 = 0x7e;
/// Marker, kind, sequence, acknowledged, length.
const HEADER_LENGTH: usize = 5;
const CHECKSUM_LENGTH: usize = 4;
/// The maximum length of a packet in bytes.
pub const PACKET_LENGTH_MAX: usize = HEADER_LENGTH + PAYLOAD_MAX + CHECKSUM_LENGTH;

/// A 32-bit checksum. With 16 bits, one damaged packet in 65,536 would be accepted.
const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'b> {
    /// The kind of the packet.
    pub kind: Kind,
    /// The number of a data or end packet. It starts at 0 and wraps around.
    pub sequence: u8,
    /// The number that the sender expects next: it has received all packets before it.
    pub acknowledged: u8,
    /// At most [`PAYLOAD_MAX`] bytes.
    pub payload: &'b [u8],
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An acknowledgement without data. It has no number of its own.
    Acknowledgement,
    /// A piece of the stream.
    Data,
    /// The end of the stream.
    End,
}

impl Packet<'_> {
    /// Appends the encoded packet to `bytes`.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend([MARKER, self.kind as u8, self.sequence, self.acknowledged]);
        debug_assert!(self.payload.len() <= PAYLOAD_MAX, "the link splits the stream");
        bytes.push(self.payload.len() as u8);
        bytes.extend(self.payload);
        let checksum = CHECKSUM.checksum(&bytes[start + 1..]);
        bytes.extend(checksum.to_be_bytes());
    }
}

/// The result of parsing bytes.
enum Found<'b> {
    Packet {
        packet: Packet<'b>,
        length: usize,
    },
    /// Possibly the start of a packet.
    Incomplete,
    /// Not a packet.
    Noise,
}

fn find(bytes: &[u8]) -> Found<'_> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_LENGTH>() else {
        return if bytes[0] == MARKER { Found::Incomplete } else { Found::Noise };
    };
    let [MARKER, kind, sequence, acknowledged, length] = *header else { return Found::Noise };
    let kind = match kind {
        0 => Kind::Acknowledgement,
        1 => Kind::Data,
        2 => Kind::End,
        _ => return Found::Noise,
    };
    let length = usize::from(length);
    if length > PAYLOAD_MAX {
        return Found::Noise;
    }
    let Some((payload, rest)) = rest.split_at_checked(length) else { return Found::Incomplete };
    let Some(checksum) = rest.first_chunk::<CHECKSUM_LENGTH>() else { return Found::Incomplete };
    if CHECKSUM.checksum(&bytes[1..HEADER_LENGTH + length]) != u32::from_be_bytes(*checksum) {
        return Found::Noise;
    }
    let packet = Packet { kind, sequence, acknowledged, payload };
    Found::Packet { packet, length: HEADER_LENGTH + length + CHECKSUM_LENGTH }
}

/// Finds packets in the bytes received from a line.
#[derive(Debug, Default)]
pub struct PacketReader {
    bytes: Vec<u8>,
    /// The number of bytes that have been processed.
    taken: usize,
    noise: u64,
}

impl PacketReader {
    /// Adds received bytes. Bytes that do not belong to a packet are dropped by the next call of
    /// [`PacketReader::next_packet`].
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next undamaged packet. If all packets are read before more bytes are added, the
    /// reader buffers less than one packet.
    ///
    /// A damaged packet does not affect others: after a false marker, the search continues with the
    /// next byte.
    pub fn next_packet(&mut self) -> Option<Packet<'_>> {
        let length = loop {
            let rest = &self.bytes[self.taken..];
            if rest.is_empty() {
                return None;
            }
            match find(rest) {
                Found::Packet { length, .. } => break length,
                Found::Incomplete => return None,
                Found::Noise => {
                    self.taken += 1;
                    self.noise += 1;
                }
            }
        };
        self.taken += length;
        match find(&self.bytes[self.taken - length..]) {
            Found::Packet { packet, .. } => Some(packet),
            Found::Incomplete | Found::Noise => None,
        }
    }

    /// Whether the remaining bytes may be the start of a packet.
    #[must_use]
    pub const fn is_incomplete(&self) -> bool {
        self.taken < self.bytes.len()
    }

    /// Skips an incomplete packet that was only noise or has lost its end.
    pub fn give_up(&mut self) {
        if self.is_incomplete() {
            self.taken += 1;
            self.noise += 1;
        }
    }

    /// Returns the number of bytes that belonged to no undamaged packet.
    #[must_use]
    pub const fn noise(&self) -> u64 {
        self.noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Packet<'_> =
        Packet { kind: Kind::Data, sequence: 7, acknowledged: 9, payload: b"~ some ~ bytes ~" };

    fn encoded(packet: Packet<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        packet.encode(&mut bytes);
        bytes
    }

    /// Returns the number of packets in `bytes`, all of which must equal [`PACKET`].
    fn count(bytes: &[u8], piece: usize) -> usize {
        let (mut reader, mut count) = (PacketReader::default(), 0);
        for piece in bytes.chunks(piece) {
            reader.feed(piece);
            while let Some(packet) = reader.next_packet() {
                assert_eq!(packet, PACKET);
                count += 1;
            }
            assert!(reader.bytes.len() - reader.taken < PACKET_LENGTH_MAX);
        }
        count
    }

    #[test]
    fn packets_are_found_in_pieces_of_any_size() {
        let bytes = encoded(PACKET).repeat(3);
        for piece in 1..=bytes.len() {
            assert_eq!(count(&bytes, piece), 3);
        }
    }

    #[test]
    fn no_packet_with_a_flipped_bit_passes() {
        let intact = encoded(PACKET);
        for bit in 0..intact.len() * 8 {
            let mut bytes = intact.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(count(&bytes, 1000), 0, "bit {bit}");
        }
    }

    #[test]
    fn a_false_packet_header_does_not_block_the_reader() {
        let (mut reader, mut bytes) = (PacketReader::default(), encoded(PACKET));
        bytes.truncate(20);
        bytes.extend([MARKER, Kind::Data as u8, 0, 0, PAYLOAD_MAX as u8]);
        bytes.extend(encoded(PACKET));
        reader.feed(&bytes);
        assert_eq!(reader.next_packet(), None);
        assert!(reader.is_incomplete());
        reader.give_up();
        assert_eq!(reader.next_packet(), Some(PACKET));
        assert!(!reader.is_incomplete());
        assert_eq!(reader.noise(), 25);
        reader.give_up();
        assert_eq!(reader.next_packet(), None);
        assert_eq!(reader.noise(), 25);
    }

    #[test]
    fn a_damaged_packet_costs_only_itself() {
        let intact = encoded(PACKET);
        for lost in 0..intact.len() {
            let mut bytes = intact.clone();
            bytes.remove(lost);
            bytes.extend(intact.repeat(9));
            assert_eq!(count(&bytes, 3), 9, "byte {lost}");
        }
    }
}
