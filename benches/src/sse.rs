//! Streams of Server-Sent Events.

use std::hint::black_box;

use mcp_sansio::framing::{SseDecoder, write_event};

/// The bytes of one read of a socket.
pub const READ: usize = 16 * 1024;

/// The longest event that is read here, in bytes.
pub const EVENT_MAX: usize = 8 * 1024 * 1024;

/// Encodes `count` events with `length` bytes of data, and with a type and an id if `named`.
///
/// # Panics
///
/// If `length` is less than that of a tool call without a text.
#[must_use]
pub fn stream(count: usize, length: usize, named: bool) -> Vec<u8> {
    let data = crate::echo(length - crate::echo(0).len());
    let mut out = Vec::new();
    encode(&mut out, count, data.as_bytes(), named);
    out
}

/// Appends `count` events with this data.
///
/// # Panics
///
/// Never: the type and the id are valid.
pub fn encode(out: &mut Vec<u8>, count: usize, data: &[u8], named: bool) {
    let (event, id) = if named { (Some("message"), Some("12345")) } else { (None, None) };
    for _ in 0..count {
        write_event(out, event, id, None, black_box(data)).expect("the event is valid");
    }
}

/// Decodes a stream in chunks of [`READ`] bytes. Returns the number of events.
///
/// # Panics
///
/// If an event exceeds the limit of the decoder.
pub fn decode(decoder: &mut SseDecoder<'_>, stream: &[u8]) -> usize {
    let mut count = 0;
    for mut read in stream.chunks(READ) {
        while !read.is_empty() {
            read = &read[decoder.feed(read)..];
            while let Some(event) = decoder.next_event() {
                black_box(event.expect("it fits"));
                count += 1;
            }
        }
    }
    count
}
