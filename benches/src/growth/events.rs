//! Streams of Server-Sent Events.

use std::hint::black_box;

use mcp_sansio::framing::SseDecoder;

use super::Input;

const UNIT: usize = 32 * 1024;

fn decode(input: Vec<u8>, piece: usize, limit: usize) -> Input {
    let mut decoder = SseDecoder::growing(limit);
    Input::new(input.len(), move || {
        for mut bytes in input.chunks(piece) {
            while !bytes.is_empty() {
                bytes = &bytes[decoder.feed(bytes)..];
                while let Some(event) = decoder.next_event() {
                    let _found = black_box(event);
                }
            }
        }
    })
}

pub(super) fn endless(step: usize) -> Input {
    decode(b"data: and more\n".repeat(step * UNIT / 15), 1500, 16 * 1024)
}

pub(super) fn dripping(step: usize) -> Input {
    let mut event = b"data: 0123456789\n".repeat(step * UNIT / 128);
    event.push(b'\n');
    decode(event, 1, 16 * 1024 * 1024)
}

pub(super) fn comments(step: usize) -> Input {
    decode(b": still here\n\n".repeat(step * UNIT / 14), 1500, 16 * 1024)
}

pub(super) fn fields(step: usize) -> Input {
    decode(b"a\nb:\ndata\n".repeat(step * UNIT / 10), 1500, 16 * 1024 * 1024)
}

pub(super) fn ids(step: usize) -> Input {
    decode(
        b"id: 17-4\nretry: 99999999999999999999\nretry: 0\n\n".repeat(step * UNIT / 48),
        1500,
        16 * 1024,
    )
}
