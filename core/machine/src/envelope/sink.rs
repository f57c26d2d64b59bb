//! Text output, and what is written there of a message.

use super::malformed::ErrorCode;
use super::parse::IdRef;
use super::scan::plain_prefix;
use super::written::Written;

/// Output for the text of messages: a `String`, with the feature `alloc`, or memory of a fixed
/// size.
///
/// Output that is full keeps that to itself until it is asked, so that writers need not check each
/// piece.
pub trait Sink {
    /// Appends `text`.
    fn push_str(&mut self, text: &str);

    /// Appends one character.
    fn push(&mut self, character: char) {
        self.push_str(character.encode_utf8(&mut [0; 4]));
    }

    /// Announces that `length` bytes follow.
    fn reserve(&mut self, length: usize) {
        let _ = length;
    }
}

/// The id of a request, as a response repeats it.
pub trait WriteId {
    /// Appends the id as JSON.
    fn write_id<S: Sink + ?Sized>(&self, out: &mut S);
}

impl WriteId for IdRef<'_> {
    fn write_id<S: Sink + ?Sized>(&self, out: &mut S) {
        match self {
            Self::Number(number) => write_integer(out, *number),
            Self::Text(text) => write_written(out, *text),
        }
    }
}

/// Appends `text` as a JSON string.
#[inline]
pub fn write_string<S: Sink + ?Sized>(out: &mut S, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    write_escaped(out, text);
    out.push('"');
}

/// Appends a string of a message as a JSON string. It is never longer than it was in the message.
pub fn write_written<S: Sink + ?Sized>(out: &mut S, text: Written<'_>) {
    if !text.escaped {
        return write_string(out, text.text);
    }
    out.push('"');
    for character in text.chars() {
        write_escaped(out, character.encode_utf8(&mut [0; 4]));
    }
    out.push('"');
}

/// Appends `text` as part of a JSON string, without quotes.
pub fn write_escaped<S: Sink + ?Sized>(out: &mut S, text: &str) {
    let length = plain_prefix(text.as_bytes());
    if length == text.len() {
        out.push_str(text);
    } else {
        write_escapes(out, text, length);
    }
}

/// Appends a text whose first character to escape is at `length`.
#[inline(never)]
fn write_escapes<S: Sink + ?Sized>(out: &mut S, text: &str, mut length: usize) {
    let mut rest = text;
    while let Some(byte) = rest.as_bytes().get(length) {
        // Escaped characters are ASCII, so no character is split.
        let (plain, tail) = rest.split_at(length);
        out.push_str(plain);
        write_escape(out, *byte);
        rest = tail.split_at(1).1;
        length = plain_prefix(rest.as_bytes());
    }
    out.push_str(rest);
}

// Uses the short forms where they exist, like `serde_json`.
fn write_escape<S: Sink + ?Sized>(out: &mut S, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => char::from(byte),
        0x08 => 'b',
        0x0c => 'f',
        b'\n' => 'n',
        b'\r' => 'r',
        b'\t' => 't',
        _ => {
            let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
            out.push_str("\\u00");
            out.push(digit(byte >> 4));
            out.push(digit(byte & 0xf));
            return;
        }
    };
    out.push('\\');
    out.push(short);
}

/// Appends `number` in decimal.
pub(crate) fn write_integer<S: Sink + ?Sized>(out: &mut S, number: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(number));
}

/// Appends the start of a message, with its `id` if there is one.
pub fn write_head<S: Sink + ?Sized>(out: &mut S, id: Option<&impl WriteId>) {
    // MCP 2026-07-28 basic/index#messages [RPC-001]
    out.push_str("{\"jsonrpc\":\"2.0\"");
    if let Some(id) = id {
        out.push_str(",\"id\":");
        id.write_id(out);
    }
}

/// Appends the start of an error response, up to the start of its `message`, a string. The `id`
/// member is omitted if the id of the offending message could not be read.
// MCP 2025-11-25 basic/index#error-responses [RPC-009]
// MCP 2026-07-28 basic/index#error-responses [RPC-008]
pub fn write_error_head<S: Sink + ?Sized>(out: &mut S, id: Option<&impl WriteId>, code: ErrorCode) {
    write_head(out, id);
    out.push_str(",\"error\":{\"code\":");
    write_integer(out, code.0);
    out.push_str(",\"message\":");
}
