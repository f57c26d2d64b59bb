//! The text form of JSON strings and integers.

use alloc::borrow::Cow;
use alloc::string::String;

use super::scan::plain_prefix;

/// Returns the content of a JSON string given with its quotes, or `None` if the text is not a
/// string. Borrows unless there are escapes to resolve.
pub(super) fn unquote(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    unescape(inner)
}

/// Resolves the escapes of a string given without its quotes; borrows a string without escapes.
/// Returns `None` if an escape is half of a surrogate pair.
#[inline]
pub(super) fn unescape(written: &str) -> Option<Cow<'_, str>> {
    unescape_if(is_escaped(written), written)
}

/// Like [`unescape`], if the caller already knows whether there are escapes.
#[inline]
pub(super) fn unescape_if(escaped: bool, written: &str) -> Option<Cow<'_, str>> {
    if escaped { resolve(written).map(Cow::Owned) } else { Some(Cow::Borrowed(written)) }
}

// Compares bytes: a search for a `char` would add the text search code to a device image.
#[inline]
pub(super) fn is_escaped(written: &str) -> bool {
    written.as_bytes().contains(&b'\\')
}

// Not inlined, because most strings have no escapes.
#[inline(never)]
fn resolve(written: &str) -> Option<String> {
    let mut resolved = String::with_capacity(written.len());
    let mut rest = written;
    while let Some((plain, escape)) = rest.split_once('\\') {
        resolved.push_str(plain);
        let (character, length) = match escape.as_bytes().first()? {
            b'u' => code_point(escape)?,
            b'b' => ('\u{8}', 1),
            b'f' => ('\u{c}', 1),
            b'n' => ('\n', 1),
            b'r' => ('\r', 1),
            b't' => ('\t', 1),
            byte => (char::from(*byte), 1),
        };
        resolved.push(character);
        rest = escape.get(length..)?;
    }
    resolved.push_str(rest);
    Some(resolved)
}

/// Decodes an escape of four digits or a surrogate pair, given without the first backslash. Returns
/// the character and the length.
fn code_point(escape: &str) -> Option<(char, usize)> {
    /// Length of the `u` and its digits; in a pair a backslash separates the two halves.
    const LENGTH: usize = 5;
    let unit = |at: usize| {
        let digits = escape.get(at..at + LENGTH)?.strip_prefix('u')?;
        digits.chars().try_fold(0, |unit, digit| Some(unit << 4 | digit.to_digit(16)?))
    };
    match unit(0)? {
        high @ 0xD800..=0xDBFF => {
            let low = unit(LENGTH + 1).filter(|low| matches!(low, 0xDC00..=0xDFFF))?;
            let code = 0x10000 + ((high - 0xD800) << 10 | (low - 0xDC00));
            Some((char::from_u32(code)?, 2 * LENGTH + 1))
        }
        unit => Some((char::from_u32(unit)?, LENGTH)),
    }
}

/// Returns whether a key, given as written between its quotes, equals `name` after its escapes are
/// resolved.
// An escape is longer than the character it encodes.
#[inline]
pub(super) fn key_is(key: &str, name: &str) -> bool {
    key == name || (key.len() > name.len() && is_escaped(key) && resolve_key(key) == name)
}

/// Resolves the escapes of a key given as written between its quotes.
// Two spellings of a key are the same key. If this parser ignored an escaped `method` that a later
// decoder understands, the two would interpret the message differently.
pub(super) fn resolve_key(key: &str) -> Cow<'_, str> {
    unescape(key).unwrap_or(Cow::Borrowed(key))
}

/// Appends `text` as a JSON string.
#[inline]
pub fn write_string(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    write_escaped(out, text);
    out.push('"');
}

/// Appends `text` as part of a JSON string, without quotes.
pub(super) fn write_escaped(out: &mut String, text: &str) {
    let length = plain_prefix(text.as_bytes());
    if length == text.len() {
        out.push_str(text);
    } else {
        write_escapes(out, text, length);
    }
}

/// Appends a text whose first character to escape is at `length`.
#[inline(never)]
fn write_escapes(out: &mut String, text: &str, mut length: usize) {
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
fn write_escape(out: &mut String, byte: u8) {
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
            out.extend([digit(byte >> 4), digit(byte & 0xf)]);
            return;
        }
    };
    out.push('\\');
    out.push(short);
}

/// Appends `number` in decimal.
pub(crate) fn write_integer(out: &mut String, number: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(number));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_string_is_borrowed_and_an_escaped_one_resolved() {
        assert!(matches!(unquote("\"é\""), Some(Cow::Borrowed("é"))));
        assert_eq!(unquote(r#""\u0061\n""#).as_deref(), Some("a\n"));
        assert_eq!(unquote(r#""\"\\\/\b\f\n\r\t""#).as_deref(), Some("\"\\/\u{8}\u{c}\n\r\t"));
        assert_eq!(unquote(r#""é\u20AC\ud83d\uDE00!""#).as_deref(), Some("é€😀!"));
        for broken in
            [r#""\ud83d""#, r#""\ude00""#, r#""\ud83dx\ude00""#, r#""\u12g4""#, r#""\u12""#]
        {
            assert_eq!(unquote(broken), None, "{broken}");
        }
        assert_eq!(unquote("1"), None);
        assert_eq!(unquote("\""), None);
    }

    #[test]
    fn integers_are_written_in_decimal() {
        for number in [0, 7, 10, -1, 1_234_567_890, i64::MAX, i64::MIN] {
            let mut out = String::new();
            write_integer(&mut out, number);
            assert_eq!(out, alloc::format!("{number}"));
        }
    }

    #[test]
    fn a_key_is_the_same_in_every_spelling() {
        assert!(key_is("id", "id"));
        assert!(key_is(r"\u0069d", "id"));
        assert!(!key_is(r"\u0069D", "id"));
        assert!(!key_is("", "id"));
    }
}
