use mcp_sansio_test::transport::{Promises, check};
use proptest::collection::vec;
use proptest::prelude::*;
use transports::packets::{Framing, PacketDecoder, PacketError, PacketStream};

use crate::tokio_ends::TokioEnds;

const LENGTH_MAX: usize = 64 * 1024;

#[test]
fn cobs_and_slip_conform_on_a_line() {
    for framing in [Framing::Cobs, Framing::Slip] {
        let promises = Promises::messages(LENGTH_MAX);
        let report = check(&mut TokioEnds::new(promises, async move || {
            // A line with the buffer of a small device.
            let (near, far) = tokio::io::duplex(256);
            let stream = |line| PacketStream::new(framing, line, LENGTH_MAX);
            (stream(near), stream(far))
        }));
        println!("{framing:?}: {report}");
    }
}

fn encode(framing: Framing, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    framing.encode(message, &mut |piece| bytes.extend_from_slice(piece));
    bytes
}

fn decode(
    framing: Framing,
    storage: usize,
    input: &[u8],
    piece: usize,
) -> Vec<Result<Vec<u8>, PacketError>> {
    let mut memory = vec![0; storage];
    let mut decoder = PacketDecoder::new(framing, memory.as_mut_slice());
    let mut outcomes = Vec::new();
    for mut bytes in input.chunks(piece) {
        while let Some(packet) = decoder.next_packet(&mut bytes) {
            outcomes.push(packet.map(<[u8]>::to_vec));
        }
        assert!(bytes.is_empty());
    }
    outcomes
}

fn framings() -> impl Strategy<Value = Framing> {
    prop_oneof![Just(Framing::Cobs), Just(Framing::Slip)]
}

/// Bytes among which those with a meaning are frequent, and runs longer than a block of COBS.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let special = prop_oneof![Just(0), Just(1), Just(0xff), Just(0xc0), Just(0xdb), Just(0xdc)];
    prop_oneof![
        vec(prop_oneof![special, any::<u8>()], 0..40),
        (any::<u8>(), 240..800_usize).prop_map(|(byte, length)| vec![byte; length]),
        vec(1..=255_u8, 248..264),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        framing in framings(), all in vec(messages(), 1..5), piece in 1..40_usize,
    ) {
        let input: Vec<u8> = all.iter().flat_map(|message| encode(framing, message)).collect();
        let expected: Vec<_> = all.into_iter().map(Ok).collect();
        prop_assert_eq!(decode(framing, 1000, &input, piece), expected);
    }

    #[test]
    fn the_delimiter_is_only_between_packets(framing in framings(), message in messages()) {
        let packet = encode(framing, &message);
        let (delimiter, inner) = match framing {
            Framing::Cobs => (0, &packet[..packet.len() - 1]),
            Framing::Slip => (0xc0, &packet[1..packet.len() - 1]),
        };
        prop_assert!(!inner.contains(&delimiter));
        if framing == Framing::Cobs {
            let length = message.len() + 4;
            prop_assert!(packet.len() <= length + 2 + length / 254);
        }
    }

    #[test]
    fn a_damaged_byte_damages_its_packet_and_at_most_the_next(
        framing in framings(), message in messages(), at: prop::sample::Index, flip in 1..=255_u8,
    ) {
        let mut input = encode(framing, &message);
        let at = at.index(input.len());
        input[at] ^= flip;
        // The second packet may be joined to the first; the third is intact.
        for _ in 0..2 {
            input.extend(encode(framing, b"{}"));
        }
        let packets = decode(framing, 1000, &input, 7);
        prop_assert_eq!(packets.last(), Some(&Ok(b"{}".to_vec())));
        let delimiter_only = framing == Framing::Slip && at == 0;
        let intact = packets.contains(&Ok(message.clone())) && message != b"{}";
        prop_assert!(!intact || delimiter_only, "{:?}", packets);
    }

    #[test]
    fn noise_neither_panics_nor_passes(framing in framings(), noise in vec(any::<u8>(), 0..300)) {
        let packets = decode(framing, 64, &noise, 11);
        prop_assert!(packets.iter().all(Result::is_err));
        let mut then = noise;
        then.push(if framing == Framing::Cobs { 0 } else { 0xc0 });
        then.extend(encode(framing, b"[]"));
        let packets = decode(framing, 64, &then, 11);
        prop_assert_eq!(packets.last(), Some(&Ok(b"[]".to_vec())));
    }

    #[test]
    fn a_packet_that_is_too_long_is_reported_and_skipped(framing in framings(), extra in 1..600_usize) {
        let mut input = encode(framing, &vec![b'x'; 60 + extra]);
        input.extend(encode(framing, &[b'y'; 60]));
        let expected = vec![Err(PacketError::TooLong), Ok(vec![b'y'; 60])];
        prop_assert_eq!(decode(framing, 64, &input, 13), expected);
    }
}

#[test]
fn the_encodings_are_those_of_other_programs() {
    // A block ends before the zero; the next one ends with the checksum.
    let cobs = encode(Framing::Cobs, &[0x11, 0x22, 0x00, 0x33]);
    assert_eq!(cobs[..4], [0x03, 0x11, 0x22, 0x06]);
    let slip = encode(Framing::Slip, b"123456789");
    assert_eq!(slip[0], 0xc0);
    assert_eq!(slip[10..14], 0xcbf4_3926_u32.to_le_bytes());
    assert_eq!(slip[14], 0xc0);
    let slip = encode(Framing::Slip, &[0xc0, 0xdb]);
    assert_eq!(slip[..5], [0xc0, 0xdb, 0xdc, 0xdb, 0xdd]);
}
