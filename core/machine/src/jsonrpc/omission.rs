//! Elements that a lossy reading leaves out of lists.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;

use super::json_error::JsonError;
use crate::envelope::scan::Scanner;
use crate::printable::Printable;

/// The elements that [`RawJson::decode_lossy`](super::RawJson::decode_lossy) left out of the lists
/// of a value, because they are malformed.
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

    /// Returns how many elements were left out.
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

/// An element that was left out of a list.
///
/// The texts are parts of the value: without control characters, because they end up on terminals
/// and in logs, and cut at [`LENGTH_MAX`](Self::LENGTH_MAX) bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Omission {
    /// Its place in the value, as a JSON Pointer: `/tools/3` or `/tools/3/icons/0`.
    pub pointer: String,
    /// Why it could not be read.
    pub reason: String,
}

impl Omission {
    /// The maximum length of each text, in bytes. 256: enough for the names of the members that
    /// results have, and for a value that is not what it should be.
    pub const LENGTH_MAX: usize = 256;
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
    /// The offsets of the first elements, with the reasons.
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

    /// Notes that the element at `offset` was left out.
    pub(super) fn note(&self, offset: usize, reason: &JsonError) {
        let mut notes = self.0.borrow_mut();
        notes.count += 1;
        if notes.first.len() < Omissions::KEPT_MAX {
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
    let mut shown = Printable::new(cut(text)).to_string();
    shown.truncate(cut(&shown).len());
    shown
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(Omission::LENGTH_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// Returns the JSON Pointer to the value at `offset` of a valid text.
fn pointer_to(text: &str, offset: usize) -> String {
    let (mut scanner, mut pointer) = (Scanner::new(text), String::new());
    loop {
        let (is_object, end) = match scanner.peek() {
            Some(b'{') => (true, b'}'),
            Some(b'[') => (false, b']'),
            _ => return pointer,
        };
        if scanner.at() >= offset {
            return pointer;
        }
        scanner.bump();
        let mut index = 0_usize;
        // Finds the value that contains the offset, and enters it.
        loop {
            if scanner.eat(end) {
                return pointer;
            }
            let key = is_object.then(|| scanner.key()).flatten();
            scanner.peek();
            let value = scanner.clone();
            scanner.trusted_value();
            if scanner.at() > offset {
                pointer.push('/');
                match key.and_then(|key| key.resolve()) {
                    Some(key) => pointer.push_str(&key.replace('~', "~0").replace('/', "~1")),
                    None => pointer.push_str(&index.to_string()),
                }
                scanner = value;
                break;
            }
            if !scanner.eat(b',') && scanner.peek() != Some(end) {
                return pointer;
            }
            index += 1;
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
        assert_eq!(pointer_to(text, 0), "");
        assert_eq!(pointer_to("[0]", 9), "");
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
