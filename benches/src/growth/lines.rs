//! Bytes to be decoded into frames.

use std::hint::black_box;

use mcp_sansio::envelope::ParseLimits;
use mcp_sansio::framing::LineDecoder;
use mcp_sansio::jsonrpc::parse;

use super::Input;

const UNIT: usize = 32 * 1024;

fn decode(input: Vec<u8>, piece: usize, limit: usize) -> Input {
    let mut decoder = LineDecoder::growing(limit);
    Input::new(input.len(), move || {
        for mut bytes in input.chunks(piece) {
            while !bytes.is_empty() {
                bytes = &bytes[decoder.feed(bytes)..];
                while let Some(frame) = decoder.next_frame() {
                    let _found = black_box(frame);
                }
            }
        }
    })
}

pub(super) fn endless(step: usize) -> Input {
    decode(vec![b'x'; step * UNIT], 1500, 16 * 1024)
}

pub(super) fn dripping(step: usize) -> Input {
    let mut line = vec![b'x'; step * UNIT / 4];
    line.push(b'\n');
    decode(line, 1, 16 * 1024 * 1024)
}

pub(super) fn blank(step: usize) -> Input {
    decode(b" \r\n".repeat(step * UNIT / 12), 1500, 16 * 1024)
}

pub(super) fn garbage(step: usize) -> Input {
    let mut text = vec![b'['; step * UNIT];
    text[step * UNIT - 1] = 0xFF;
    let mut limits = ParseLimits::default();
    limits.batch = 1024;
    Input::new(text.len(), move || {
        let _refused = black_box(parse(&text, limits));
    })
}
