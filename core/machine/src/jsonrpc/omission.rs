//! Elements and hints that a lossy reading leaves out.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;

use super::json_error::JsonError;
use crate::envelope::Written;
use crate::envelope::scan::Scanner;
use crate::printable::Printable;

/// The elements of lists and the hints that
/// [`RawJson::decode_lossy`](super::RawJson::decode_lossy) left out of a value, because they are
/// malformed.
///
/// All are counted; the first [`KEPT_MAX`](Self::KEPT_MAX) are described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Omissions {
    first: Vec<Omission>,
    count: usize,
}

impl Omissions {
    /// How many are described. 16: enough to recognize a fault of the author, and, with two texts
    /// of [`Omission::LENGTH_MAX`] each, at most 8 KiB.
    pub const KEPT_MAX: usize = 16;

    /// Returns the described ones, in the order of the text.
    pub fn iter(&self) -> core::slice::Iter<'_, Omission> {
        self.first.iter()
    }

    /// Returns how many were left out.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns whether nothing was left out.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl From<Omission> for Omissions {
    fn from(omission: Omission) -> Self {
        Self { first: [omission].into(), count: 1 }
    }
}

impl<'a> IntoIterator for &'a Omissions {
    type Item = &'a Omission;
    type IntoIter = core::slice::Iter<'a, Omission>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Omissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, omission) in self.first.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{omission}")?;
        }
        match self.count - self.first.len() {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// An element of a list or a hint that was left out.
///
/// The texts are parts of the value: without control characters, because they end up on terminals
/// and in logs, and cut at [`LENGTH_MAX`](Self::LENGTH_MAX) bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Omission {
    /// Its place in the value, as a JSON Pointer: `/tools/3` or `/tools/3/icons/0`.
    pub pointer: String,
    /// Why it could not be read, with the place in it.
    pub reason: String,
}

impl Omission {
    /// The maximum length of each text, in bytes. 256: enough for the names of the members that
    /// results have, and for a value that is not what it should be.
    pub const LENGTH_MAX: usize = 256;

    /// Describes what was left out. The texts are escaped and cut.
    #[must_use]
    pub fn new(pointer: &str, reason: &str) -> Self {
        Self { pointer: printable(pointer), reason: printable(reason) }
    }
}

impl fmt::Display for Omission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.pointer, self.reason)
    }
}

/// Collects what is left out while a text is read.
#[derive(Debug, Default)]
pub(super) struct Omitted(RefCell<Notes>);

#[derive(Debug, Default)]
struct Notes {
    /// The offsets of the first values, with the reasons.
    first: Vec<(usize, String)>,
    count: usize,
}

impl Omitted {
    pub(super) fn count(&self) -> usize {
        self.0.borrow().count
    }

    /// Forgets all but the first `count` elements.
    pub(super) fn forget_after(&self, count: usize) {
        let mut notes = self.0.borrow_mut();
        notes.first.truncate(count);
        notes.count = count;
    }

    /// Notes that the `value` at `offset` was left out, because of an error at `element` of it.
    pub(super) fn note(&self, offset: usize, value: &str, element: usize, reason: &JsonError) {
        let mut notes = self.0.borrow_mut();
        notes.count += 1;
        if notes.first.len() < Omissions::KEPT_MAX {
            let reason = reason.clone().located(value, element);
            notes.first.push((offset, printable(&reason.to_string())));
        }
    }

    /// Returns what was left out of `text`.
    pub(super) fn into_omissions(self, text: &str) -> Omissions {
        let Notes { first, count } = self.0.into_inner();
        let first = first.into_iter().map(|(offset, reason)| {
            let pointer = printable(&pointer_to(text, offset));
            Omission { pointer, reason }
        });
        Omissions { first: first.collect(), count }
    }
}

/// Escapes a text, and cuts it at [`Omission::LENGTH_MAX`] bytes.
fn printable(text: &str) -> String {
    let cut = |text| excerpt(text, Omission::LENGTH_MAX);
    let mut shown = Printable::new(cut(text)).to_string();
    shown.truncate(cut(&shown).len());
    shown
}

/// Returns the first `length_max` bytes of a text, or less, so that it ends with a whole character.
pub(crate) fn excerpt(text: &str, length_max: usize) -> &str {
    let mut end = text.len().min(length_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// How many levels of nesting a pointer names. 16: messages of the protocol have fewer, and the text
/// is read once for each.
const LEVELS_MAX: usize = 16;

/// Returns the JSON Pointer to the value at `offset` of a valid text, or to a value around it. The
/// offset may be that of its key or, for a container, that of its end.
pub(super) fn pointer_to(text: &str, offset: usize) -> String {
    let (mut scanner, mut pointer) = (Scanner::new(text), String::new());
    for _ in 0..LEVELS_MAX {
        let first = scanner.peek();
        if scanner.at() >= offset || !matches!(first, Some(b'{' | b'[')) {
            break;
        }
        scanner.bump();
        let mut index = 0_usize;
        // Finds the element that contains the offset, and enters it.
        let (key, value) = loop {
            if matches!(scanner.peek(), Some(b'}' | b']')) {
                return pointer;
            }
            let key = if first == Some(b'{') { scanner.key() } else { None };
            let value = scanner.clone();
            scanner.trusted_value();
            if scanner.at() > offset {
                break (key, value);
            }
            if !scanner.eat(b',') {
                return pointer;
            }
            index += 1;
        };
        pointer.push('/');
        match key {
            Some(key) => push_key(&mut pointer, key),
            None => pointer.push_str(&index.to_string()),
        }
        scanner = value;
    }
    pointer
}

fn push_key(pointer: &mut String, key: Written<'_>) {
    for character in key.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            // A terminal would obey it.
            '\0'..='\x1f' | '\x7f'..='\u{9f}' => pointer.push('\u{fffd}'),
            _ => pointer.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_names_the_members_and_indices_around_a_value() {
        let text = r#" {"a":{"b":[1 , {"c/~d" : [ [], "e,]}" , {"f":2}] }]},"g":[null]} "#;
        for (value, pointer) in [
            ("1 ", "/a/b/0"),
            (r#"{"c"#, "/a/b/1"),
            ("[]", "/a/b/1/c~1~0d/0"),
            (r#""e,"#, "/a/b/1/c~1~0d/1"),
            (r#"{"f"#, "/a/b/1/c~1~0d/2"),
            ("2}", "/a/b/1/c~1~0d/2/f"),
            ("null", "/g/0"),
        ] {
            assert_eq!(pointer_to(text, text.find(value).unwrap()), pointer);
        }
        for (place, pointer) in [("\"b", "/a/b"), ("}]}", "/a/b/1"), ("}] ", "/a/b/1/c~1~0d/2")] {
            assert_eq!(pointer_to(text, text.find(place).unwrap()), pointer, "{place}");
        }
        assert_eq!(pointer_to(text, 0), "");
        assert_eq!(pointer_to("[0]", 9), "");
        assert_eq!(pointer_to("[0,{}]", 4), "/1");
        assert_eq!(pointer_to("[}", 1), "");
    }

    #[test]
    fn a_pointer_has_a_bounded_number_of_levels() {
        let deep = "[".repeat(10_000);
        assert_eq!(pointer_to(&deep, 9_999), "/0".repeat(LEVELS_MAX));
    }

    #[test]
    fn texts_are_short_and_have_no_control_characters() {
        let long = "\u{202e}é".repeat(400);
        let shown = printable(&long);
        assert!(shown.len() <= Omission::LENGTH_MAX, "{}", shown.len());
        assert!(shown.starts_with("\\u202eé\\u202eé"), "{shown}");
        assert_eq!(printable("short"), "short");
    }
}
