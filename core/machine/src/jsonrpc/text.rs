//! Strings that own their text where they contain escapes.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use memchr::memchr;

use crate::envelope::Sink;
use crate::envelope::{Written, is_escaped, unescape_one};

impl Sink for String {
    #[inline]
    fn push_str(&mut self, text: &str) {
        self.push_str(text);
    }

    #[inline]
    fn push(&mut self, character: char) {
        self.push(character);
    }

    #[inline]
    fn reserve(&mut self, length: usize) {
        self.reserve(length);
    }
}

impl<'a> Written<'a> {
    /// Returns the text with its escapes resolved, or `None` if an escape is invalid.
    #[inline]
    pub(crate) fn resolve(self) -> Option<Cow<'a, str>> {
        if self.escaped {
            resolve(self.text).map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(self.text))
        }
    }
}

/// Returns a string of a parsed message, in which every escape is valid, with its escapes resolved.
#[inline]
pub(crate) fn resolved(written: Written<'_>) -> Cow<'_, str> {
    written.resolve().unwrap_or(Cow::Borrowed(written.text))
}

/// Replaces each escape that is half of a surrogate pair by the replacement character, U+FFFD, whose
/// escape has the same length. Returns `None` if the text has no such escape.
pub(super) fn replace_lone_surrogates(text: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let digits = text.get(at..)?.strip_prefix(br"\u".as_slice())?.get(..4)?;
        u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut replaced = None;
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += next;
        let is_pair = matches!(unit(at), Some(0xD800..=0xDBFF))
            && matches!(unit(at + 6), Some(0xDC00..=0xDFFF));
        at += match unit(at) {
            _ if is_pair => 12,
            Some(0xD800..=0xDFFF) => {
                let replaced = replaced.get_or_insert_with(|| text.to_vec());
                replaced[at..at + 6].copy_from_slice(br"\ufffd");
                6
            }
            _ => 2,
        };
    }
    replaced
}

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
    Written { text: written, escaped: is_escaped(written) }.resolve()
}

// Not inlined, because most strings have no escapes.
#[inline(never)]
fn resolve(written: &str) -> Option<String> {
    let mut resolved = String::with_capacity(written.len());
    let mut rest = written;
    while let Some((plain, escape)) = rest.split_once('\\') {
        resolved.push_str(plain);
        let (character, length) = unescape_one(escape)?;
        resolved.push(character);
        rest = escape.get(length..)?;
    }
    resolved.push_str(rest);
    Some(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::write_integer;

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
}
