use std::iter;

use mcp_sansio::framing::{PacketDecoder, PacketEncoder, PacketFraming};
use proptest::collection::vec;
use proptest::prelude::*;

/// Encodes a line that is given in pieces, and writes the packet in pieces.
fn encode_in_pieces(framing: PacketFraming, line: &[u8], given: usize, written: usize) -> Vec<u8> {
    let mut encoder = PacketEncoder::new(framing);
    let mut packet = Vec::new();
    let line: Vec<u8> = line.iter().copied().chain(iter::once(b'\n')).collect();
    for mut rest in line.chunks(given) {
        while !rest.is_empty() {
            let taken = encoder.feed(rest);
            assert!(taken > 0);
            rest = &rest[taken..];
            while !encoder.pending().is_empty() {
                let piece = encoder.pending();
                let piece = &piece[..written.min(piece.len())];
                packet.extend_from_slice(piece);
                encoder.consume(written);
            }
        }
    }
    packet
}

fn encode(framing: PacketFraming, line: &[u8]) -> Vec<u8> {
    encode_in_pieces(framing, line, usize::MAX, usize::MAX)
}

/// Decodes lines, without the blank ones, which decoders of lines skip, and checks the number of
/// those that are damaged.
fn decode(framing: PacketFraming, input: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = PacketDecoder::new(framing);
    let mut lines = Vec::new();
    let mut idle = 0;
    for byte in input {
        let output = decoder.decode(*byte);
        idle = if output.is_empty() { idle + 1 } else { 0 };
        assert!(idle < 10);
        lines.extend_from_slice(output);
    }
    let mut lines: Vec<Vec<u8>> = lines.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    // The last line has not ended.
    lines.pop();
    let damaged = lines.iter().filter(|line| line.contains(&0)).count();
    assert!(decoder.damaged() as usize <= damaged);
    lines.retain(|line| !line.is_empty());
    lines
}

fn framings() -> impl Strategy<Value = PacketFraming> {
    prop_oneof![Just(PacketFraming::Cobs), Just(PacketFraming::Slip)]
}

/// Lines in which bytes with a meaning are frequent, and runs longer than a block of COBS.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let special = prop_oneof![Just(0), Just(1), Just(0xff), Just(0xc0), Just(0xdb), Just(0xdc)];
    prop_oneof![
        vec(prop_oneof![special, 11..=255_u8], 1..40),
        (11..=255_u8, 240..800_usize).prop_map(|(byte, length)| vec![byte; length]),
        vec(11..=255_u8, 248..264),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        framing in framings(), all in vec(lines(), 1..5),
        given in 1..300_usize, written in 1..300_usize,
    ) {
        let input: Vec<u8> =
            all.iter().flat_map(|line| encode_in_pieces(framing, line, given, written)).collect();
        prop_assert_eq!(decode(framing, &input), all);
    }

    #[test]
    fn the_delimiter_is_only_between_packets(framing in framings(), line in lines()) {
        let packet = encode(framing, &line);
        let (delimiter, inner) = match framing {
            PacketFraming::Slip => (0xc0, &packet[1..packet.len() - 1]),
            _ => (0, &packet[..packet.len() - 1]),
        };
        prop_assert_eq!(*packet.last().unwrap(), delimiter);
        prop_assert!(!inner.contains(&delimiter));
        if framing == PacketFraming::Cobs {
            let length = line.len() + 4;
            prop_assert!(packet.len() <= length + 2 + length / 254);
        }
    }

    #[test]
    fn a_damaged_byte_damages_its_packet_and_at_most_the_next(
        framing in framings(), line in vec(11..=255_u8, 3..600),
        at: prop::sample::Index, flip in 1..=255_u8,
    ) {
        let mut input = encode(framing, &line);
        let at = at.index(input.len());
        input[at] ^= flip;
        // The second packet may be joined to the first; the third is intact.
        for _ in 0..2 {
            input.extend(encode(framing, b"{}"));
        }
        let decoded = decode(framing, &input);
        prop_assert_eq!(decoded.last().unwrap(), b"{}");
        for other in decoded.iter().filter(|other| other.as_slice() != b"{}") {
            prop_assert!(other.contains(&0), "{:?}", decoded);
        }
    }

    #[test]
    fn noise_passes_only_as_damaged_lines(
        framing in framings(), noise in vec(any::<u8>(), 0..300),
    ) {
        let mut input = noise;
        input.push(if framing == PacketFraming::Cobs { 0 } else { 0xc0 });
        let noisy = decode(framing, &input);
        prop_assert!(noisy.iter().all(|line| line.contains(&0)), "{:?}", noisy);
        input.extend(encode(framing, b"[]"));
        let decoded = decode(framing, &input);
        prop_assert_eq!(decoded.last().unwrap(), b"[]");
    }
}

#[test]
fn the_encodings_are_those_of_other_programs() {
    // A block ends before the zero; the next one ends with the checksum.
    let cobs = encode(PacketFraming::Cobs, &[0x11, 0x22, 0x00, 0x33]);
    assert_eq!(cobs[..4], [0x03, 0x11, 0x22, 0x06]);
    let slip = encode(PacketFraming::Slip, b"123456789");
    assert_eq!(slip[0], 0xc0);
    assert_eq!(slip[10..14], 0xcbf4_3926_u32.to_le_bytes());
    assert_eq!(slip[14], 0xc0);
    let slip = encode(PacketFraming::Slip, &[0xc0, 0xdb]);
    assert_eq!(slip[..5], [0xc0, 0xdb, 0xdc, 0xdb, 0xdd]);
}

#[test]
fn a_damaged_packet_is_counted_and_ends_its_line() {
    for framing in [PacketFraming::Cobs, PacketFraming::Slip] {
        let packet = encode(framing, br#"{"id":1}"#);
        // Without its last byte but the delimiter, with one more, and with no checksum at all.
        let (rest, delimiter) = packet.split_at(packet.len() - 1);
        let short = [&rest[..rest.len() - 1], delimiter].concat();
        let long = [rest, &b"x"[..], delimiter].concat();
        for damaged in [&short[..], &long[..], &[2, b'x', delimiter[0]][..]] {
            let mut decoder = PacketDecoder::new(framing);
            let input = [damaged, &packet[..]].concat();
            let output: Vec<u8> =
                input.iter().flat_map(|byte| decoder.decode(*byte).to_vec()).collect();
            assert_eq!(decoder.damaged(), 1);
            let lines: Vec<&[u8]> =
                output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
            assert!(lines[0].ends_with(b"\0"));
            assert_eq!(lines[1..], [&br#"{"id":1}"#[..]]);
        }
    }
}

#[test]
fn a_line_end_within_a_packet_does_not_end_the_line() {
    // {"a":1,\n"b":2} and its checksum, as another program may send it.
    let message = b"{\"a\":1,\n\"b\":2}";
    let mut input = vec![message.len() as u8 + 5];
    input.extend_from_slice(message);
    input.extend(crc32(message).to_le_bytes());
    input.push(0);
    assert_eq!(decode(PacketFraming::Cobs, &input), [b"{\"a\":1,\r\"b\":2}"]);
}

/// The CRC-32, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    })
}
