use alloc::string::String;
use core::str;
use core::time::Duration;

use super::SSE_FIELD_LENGTH_MAX;
use super::event::SseError;

/// Returns the value of a line if its field is `name`.
pub(super) fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

/// Replaces invalid UTF-8, as the HTML standard specifies.
pub(super) fn set(text: &mut String, value: &[u8]) -> Result<(), SseError> {
    if value.len() > SSE_FIELD_LENGTH_MAX {
        return Err(SseError::FieldTooLong);
    }
    text.clear();
    if let Ok(value) = str::from_utf8(value) {
        text.push_str(value);
        return Ok(());
    }
    for chunk in value.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Ok(())
}

/// Parses one or more digits. A number too large for the type saturates.
pub(super) fn milliseconds(value: &[u8]) -> Option<Duration> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let number = |value: &[u8]| {
        value.iter().fold(0_u64, |number, digit| {
            number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        })
    };
    digits.then(|| Duration::from_millis(number(value)))
}
