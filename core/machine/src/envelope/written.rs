//! Strings and values as a frame contains them: borrowed from it, and never copied.

use core::fmt;
use core::iter::FusedIterator;
use core::ops::Range;

use super::integer::Integer;
use super::parse::{IdRef, read_id};
use super::scan::Scanner;

/// The text between the quotes of a JSON string, still escaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written<'a> {
    pub(crate) text: &'a str,
    /// Whether the text contains escapes.
    pub(crate) escaped: bool,
}

impl<'a> Written<'a> {
    /// Wraps the content of a string that was checked to be JSON.
    #[inline]
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, escaped: is_escaped(text) }
    }

    /// Returns the content of a JSON string given with its quotes, or `None` if the text is not a
    /// string.
    #[inline]
    pub(super) fn from_quoted(text: &'a str) -> Option<Self> {
        text.strip_prefix('"')?.strip_suffix('"').map(Self::new)
    }

    /// Wraps a text that is no part of a message, and contains no escapes.
    #[must_use]
    pub const fn plain(text: &'a str) -> Self {
        Self { text, escaped: false }
    }

    /// Returns the length of the string, with its escapes resolved, in bytes.
    #[must_use]
    pub fn length(self) -> usize {
        if self.escaped { self.chars().map(char::len_utf8).sum() } else { self.text.len() }
    }

    /// Returns whether the string, with its escapes resolved, is `text`.
    // An escape is longer than the character it encodes.
    #[inline]
    #[must_use]
    pub fn is(self, text: &str) -> bool {
        self.text == text
            || (self.escaped && self.text.len() > text.len() && self.chars().eq(text.chars()))
    }

    /// Returns the characters of the string, with its escapes resolved. An escape that encodes no
    /// character, which no parsed message contains, yields U+FFFD.
    pub fn chars(self) -> impl Iterator<Item = char> + use<'a> {
        let Self { text: mut rest, escaped } = self;
        core::iter::from_fn(move || {
            let escape = if escaped { rest.strip_prefix('\\') } else { None };
            let (character, length) = match escape {
                None => rest.chars().next().map(|first| (first, first.len_utf8()))?,
                Some(escape) => {
                    let (character, length) =
                        unescape_one(escape).unwrap_or((char::REPLACEMENT_CHARACTER, 0));
                    (character, length + 1)
                }
            };
            rest = rest.get(length..).unwrap_or_default();
            Some(character)
        })
    }

    /// Returns the string with its escapes resolved: borrowed from the frame if there are none,
    /// otherwise written into `storage`. Returns `None` if it does not fit there.
    #[inline]
    #[must_use]
    pub fn resolve_in<'s>(self, storage: &'s mut [u8]) -> Option<&'s str>
    where
        'a: 's,
    {
        if self.escaped { self.resolve_escapes_in(storage) } else { Some(self.text) }
    }

    #[cold]
    fn resolve_escapes_in(self, storage: &mut [u8]) -> Option<&str> {
        let mut end = 0;
        for character in self.chars() {
            let place = storage.get_mut(end..end + character.len_utf8())?;
            end += character.encode_utf8(place).len();
        }
        core::str::from_utf8(storage.get(..end)?).ok()
    }
}

// Compares bytes: a search for a `char` would add the text search code to a device image.
#[inline]
pub(crate) fn is_escaped(written: &str) -> bool {
    written.as_bytes().contains(&b'\\')
}

/// Decodes an escape given without its backslash. Returns the character and the length.
#[inline]
pub(crate) fn unescape_one(escape: &str) -> Option<(char, usize)> {
    Some(match escape.as_bytes().first()? {
        b'u' => code_point(escape)?,
        b'b' => ('\u{8}', 1),
        b'f' => ('\u{c}', 1),
        b'n' => ('\n', 1),
        b'r' => ('\r', 1),
        b't' => ('\t', 1),
        byte => (char::from(*byte), 1),
    })
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

/// One JSON value as text that was checked before, borrowed from its frame. It is not parsed
/// further.
///
/// `RawJson`, with the feature `alloc`, is the form that can also own its text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JsonText<'a>(&'a str);

impl<'a> JsonText<'a> {
    /// An empty object.
    pub const EMPTY_OBJECT: JsonText<'static> = JsonText("{}");
    /// `null`.
    pub const NULL: JsonText<'static> = JsonText("null");

    /// Wraps text that the caller knows to be one JSON value, without white space around it. The
    /// text is not validated.
    #[must_use]
    pub const fn trusted(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns the text.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// Returns the members of this object in order, or none if the value is not an object.
    #[must_use]
    pub fn members(self) -> Entries<'a> {
        Entries::new(self.0)
    }

    /// Returns the first member called `name`, unless it is `null`: in an optional member, `null`
    /// is absence. Linear in the length of the object.
    #[must_use]
    pub fn get_present(self, name: &str) -> Option<Self> {
        let mut members = self.members();
        while let Some(member) = members.next_after("") {
            if member.key.is(name) {
                return Some(member.value).filter(|value| *value != JsonText::NULL);
            }
        }
        None
    }

    /// Returns the content of a string, or `None` if the value is not a string.
    #[must_use]
    pub fn to_written(self) -> Option<Written<'a>> {
        Written::from_quoted(self.0)
    }

    /// Returns the value as an integer, in any spelling: `3.0` is 3. Returns `None` if it is not an
    /// integer of at most 64 bits.
    #[must_use]
    pub fn to_integer(self) -> Option<i64> {
        match Integer::read(self.0).or_else(|| Integer::read_any_spelling(self.0))? {
            Integer::Positive(number) => number.try_into().ok(),
            Integer::Negative(number) => Some(number),
        }
    }

    /// Returns the value as a boolean, if it is one.
    #[must_use]
    pub fn to_bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Returns the value as a request id, if it is one.
    pub(crate) fn to_id(self) -> Option<IdRef<'a>> {
        read_id(self.0, usize::MAX).ok()
    }

    /// Returns whether the value is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Returns whether the value is an array without elements.
    pub(crate) fn is_empty_array(self) -> bool {
        self.0.starts_with('[') && Scanner::new(self.0).is_empty_array()
    }
}

impl fmt::Debug for JsonText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// An iterator over the members of an object, in order. It is empty for other values.
///
/// A whole iteration is linear in the length of the object.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    scanner: Scanner<'a>,
}

/// One member of an object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// The key.
    pub key: Written<'a>,
    /// The value.
    pub value: JsonText<'a>,
    /// The position of the value in the text of the object, in bytes.
    pub range: Range<usize>,
}

impl<'a> Entries<'a> {
    /// Iterates over the members of `text`, which is one JSON value without leading white space.
    pub(crate) fn new(text: &'a str) -> Self {
        let mut scanner = Scanner::new(text);
        if !scanner.eat(b'{') {
            scanner = Scanner::new("");
        }
        Self { scanner }
    }

    /// Iterates over the remaining members of an object; `text` starts after the first members.
    pub(crate) fn after(text: &'a str) -> Self {
        let mut scanner = Scanner::new(text);
        scanner.eat(b',');
        Self { scanner }
    }

    /// Returns the next member. If its value starts with `start`, that prefix is not scanned again:
    /// an opening brace and complete members, the last of which is not a number.
    // Inlined because iterating over the parameters dominates the cost of reading a message.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn next_after(&mut self, start: &str) -> Option<Entry<'a>> {
        let Some(key) = self.scanner.key() else {
            // The object has ended, or the text is not JSON: iteration stops.
            self.scanner = Scanner::new("");
            return None;
        };
        let at = self.scanner.at();
        self.scanner.trusted_value_after(start);
        let value = JsonText(self.scanner.since(at));
        let range = at..self.scanner.at();
        self.scanner.eat(b',');
        Some(Entry { key, value, range })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    #[inline(never)]
    fn next(&mut self) -> Option<Entry<'a>> {
        self.next_after("")
    }
}

impl FusedIterator for Entries<'_> {}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn escapes_are_resolved_without_memory_or_in_lent_memory() {
        for (written, resolved) in [
            ("é", "é"),
            (r"\u0061\n", "a\n"),
            (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r"é\u20AC\ud83d\uDE00!", "é€😀!"),
            ("", ""),
        ] {
            let string = Written::new(written);
            assert_eq!(string.chars().collect::<String>(), resolved);
            assert!(string.is(resolved) && !string.is("other"));
            let mut storage = [0; 16];
            assert_eq!(string.resolve_in(&mut storage), Some(resolved));
            let fits_in = |length| string.resolve_in(&mut [0; 16][..length]).is_some();
            assert!(fits_in(resolved.len()));
            assert_eq!(
                resolved.is_empty() || !fits_in(resolved.len() - 1),
                string.escaped || resolved.is_empty()
            );
        }
        for broken in [r"\ud83d", r"\ude00", r"\ud83dx\ude00", r"\u12g4", r"\u12", r"\"] {
            assert!(Written::new(broken).chars().count() <= broken.len(), "{broken}");
        }
    }

    #[test]
    fn a_key_is_the_same_in_every_spelling() {
        assert!(Written::new("id").is("id"));
        assert!(Written::new(r"\u0069d").is("id"));
        assert!(!Written::new(r"\u0069D").is("id"));
        assert!(!Written::new("").is("id"));
    }

    #[test]
    fn values_are_read_by_their_type() {
        let object = JsonText::trusted(r#"{"a":3.0,"b":true,"c":"x","d":null,"e":1.5}"#);
        let get = |name| object.get_present(name);
        assert_eq!(get("a").and_then(JsonText::to_integer), Some(3));
        assert_eq!(get("e").and_then(JsonText::to_integer), None);
        assert_eq!(get("b").and_then(JsonText::to_bool), Some(true));
        assert_eq!(get("c").and_then(JsonText::to_bool), None);
        assert!(get("c").and_then(JsonText::to_written).is_some_and(|text| text.is("x")));
        assert!(get("d").is_none() && get("f").is_none());
    }
}
