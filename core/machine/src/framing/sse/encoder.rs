use alloc::vec::Vec;
use core::time::Duration;

use memchr::memchr2;

use super::SSE_FIELD_LENGTH_MAX;

/// Why an event cannot be encoded. The caller's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseFieldError {
    /// The type or the id contains CR, LF or NUL, which a field cannot carry.
    #[error("the type or the id of an event contains a line end or NUL")]
    Forbidden,
    /// The type or the id is longer than [`SSE_FIELD_LENGTH_MAX`].
    #[error("the type or the id of an event is longer than {SSE_FIELD_LENGTH_MAX} bytes")]
    TooLong,
}

/// Appends one event. Each line of `data`, whatever its line end, is written as a separate line,
/// and the reader joins them with LF; a JSON message without line ends stays on one line. Empty
/// data makes an event that carries only its id. `retry` is written in whole milliseconds.
///
/// The cost is linear in the length of the arguments.
///
/// # Errors
///
/// Returns [`SseFieldError`] for a type or an id that cannot be encoded, and writes nothing.
// MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-005]: the first event of a
// stream has an id and an empty data field.
pub fn write_event(
    out: &mut Vec<u8>,
    event: Option<&str>,
    id: Option<&str>,
    retry: Option<Duration>,
    data: &[u8],
) -> Result<(), SseFieldError> {
    for text in [event, id].into_iter().flatten() {
        check(text)?;
    }
    out.reserve(data.len() + b"data: \n\n".len());
    if let Some(event) = event {
        write_field(out, b"event: ", event.as_bytes());
    }
    if let Some(id) = id {
        write_field(out, b"id: ", id.as_bytes());
    }
    if let Some(retry) = retry {
        write_retry_field(out, retry);
    }
    let mut rest = data;
    while let Some(end) = memchr2(b'\r', b'\n', rest) {
        write_field(out, b"data: ", &rest[..end]);
        rest = match &rest[end..] {
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => &[],
        };
    }
    write_field(out, b"data: ", rest);
    out.push(b'\n');
    Ok(())
}

/// Appends an id without an event. A reader records it as the last id and dispatches no event.
///
/// # Errors
///
/// Returns [`SseFieldError`] for an id that cannot be encoded, and writes nothing.
pub fn write_event_id(out: &mut Vec<u8>, id: &str) -> Result<(), SseFieldError> {
    check(id)?;
    write_field(out, b"id: ", id.as_bytes());
    out.push(b'\n');
    Ok(())
}

/// Appends the reconnection time without an event, in whole milliseconds.
// MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-007]: sent before a connection is closed early.
pub fn write_retry(out: &mut Vec<u8>, retry: Duration) {
    write_retry_field(out, retry);
    out.push(b'\n');
}

/// Appends a comment, which keeps an idle connection alive and which readers ignore. Write it
/// between events only.
// MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [SSE-014]: long-lived streams may carry comments.
pub fn write_comment(out: &mut Vec<u8>) {
    out.extend_from_slice(b":\n\n");
}

fn check(text: &str) -> Result<(), SseFieldError> {
    if text.len() > SSE_FIELD_LENGTH_MAX {
        return Err(SseFieldError::TooLong);
    }
    // Types and ids are too short to prepare a search.
    if text.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Err(SseFieldError::Forbidden);
    }
    Ok(())
}

fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    out.push(b'\n');
}

fn write_retry_field(out: &mut Vec<u8>, retry: Duration) {
    let milliseconds = u64::try_from(retry.as_millis()).unwrap_or(u64::MAX);
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = milliseconds;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    write_field(out, b"retry: ", &digits[start..]);
}
