//! Server-Sent Events.

mod decoder;
mod encoder;
#[cfg(test)]
mod tests;

use alloc::string::String;
use core::str::{self, Utf8Error};
use core::time::Duration;

use super::FrameError;

pub use decoder::SseDecoder;
pub use encoder::{SseFieldError, write_comment, write_event, write_event_id, write_retry};

/// Maximum length of an event's type and of its id, in bytes. An id is sent back in a header, and
/// servers commonly accept 8 KiB for all headers together; the last id is kept as long as its
/// stream.
///
/// A longer type is read up to this length. A longer id is read as an empty one, after which a
/// stream cannot be resumed.
pub const SSE_FIELD_LENGTH_MAX: usize = 1024;

/// An event that borrows from the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent<'a> {
    /// The type, `message` by default. Invalid UTF-8 is replaced.
    pub event: &'a str,
    /// The data, with its lines joined by LF and otherwise unchanged. Empty if the data fields have
    /// no value.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-010]: an event with empty data is no message.
    pub data: &'a [u8],
    /// The last id of the stream so far, see
    /// [`SseDecoder::last_event_id`].
    pub id: Option<&'a str>,
    /// The reconnection time, if this event sets one.
    pub retry: Option<Duration>,
    /// Whether this event sets the id.
    pub(crate) sets_id: bool,
}

impl<'a> SseEvent<'a> {
    /// Returns the data as text.
    ///
    /// # Errors
    ///
    /// Fails if the data is not UTF-8. The HTML standard replaces invalid bytes, which would
    /// silently change a message; here the caller decides.
    pub const fn text(&self) -> Result<&'a str, Utf8Error> {
        str::from_utf8(self.data)
    }
}

/// Returns the value of a line if its field is `name`.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

/// Replaces invalid UTF-8, as the HTML standard specifies.
fn set(text: &mut String, value: &[u8]) {
    text.clear();
    if let Ok(value) = str::from_utf8(value) {
        return text.push_str(value);
    }
    for chunk in value.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Parses one or more digits. A number too large for the type saturates.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let number = |value: &[u8]| {
        value.iter().fold(0_u64, |number, digit| {
            number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        })
    };
    digits.then(|| Duration::from_millis(number(value)))
}
