use alloc::borrow::Cow;
use core::iter::FusedIterator;
use core::ops::Range;

use super::raw::RawJson;
use super::text::resolved;
use crate::envelope::scan::Scanner;
use crate::envelope::{Entries, Entry, Written};

/// An iterator over the members of an object, in order. It is empty for other values.
///
/// A whole iteration is linear in the length of the object and does not allocate.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    entries: Entries<'a>,
}

/// One member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member<'a> {
    /// The key as written, without its quotes.
    pub key: &'a str,
    /// Whether the key contains escapes, so that [`Member::name`] differs from it.
    pub key_escaped: bool,
    /// The value.
    pub value: RawJson<'a>,
    /// The position of the value in the text of the object, in bytes.
    pub range: Range<usize>,
}

impl<'a> Member<'a> {
    /// Returns the key with its escapes resolved; borrowed if there are no escapes.
    #[inline]
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        resolved(self.written())
    }

    /// Returns whether the key, with escapes resolved, is `name`.
    #[inline]
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.written().is(name)
    }

    #[inline]
    pub(crate) const fn written(&self) -> Written<'a> {
        Written { text: self.key, escaped: self.key_escaped }
    }
}

impl<'a> From<Entry<'a>> for Member<'a> {
    #[inline(always)]
    fn from(entry: Entry<'a>) -> Self {
        let Entry { key, value, range } = entry;
        Self { key: key.text, key_escaped: key.escaped, value: value.into(), range }
    }
}

impl<'a> Members<'a> {
    /// Iterates over the members of `text`, which is one JSON value without leading white space.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { entries: Entries::new(text) }
    }

    /// Iterates over the remaining members of an object; `text` starts after the first members.
    pub(crate) fn after(text: &'a str) -> Self {
        Self { entries: Entries::after(text) }
    }

    /// See [`Entries::next_after`].
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn next_after(&mut self, start: &str) -> Option<Member<'a>> {
        self.entries.next_after(start).map(Member::from)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    #[inline(never)]
    fn next(&mut self) -> Option<Member<'a>> {
        self.next_after("")
    }
}

impl FusedIterator for Members<'_> {}

impl RawJson<'_> {
    /// Returns the members of this object in order, or none if the value is not an object.
    #[must_use]
    pub fn members(&self) -> Members<'_> {
        Members::new(self.as_str())
    }

    /// Returns the first member called `name`. Linear in the length of the object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<RawJson<'_>> {
        let mut members = self.members();
        while let Some(member) = members.next_after("") {
            if member.is_named(name) {
                return Some(member.value);
            }
        }
        None
    }

    /// Returns the first member called `name`, unless it is `null`: in an optional member, `null`
    /// is absence. Linear in the length of the object.
    #[must_use]
    pub fn get_present(&self, name: &str) -> Option<RawJson<'_>> {
        self.get(name).filter(|value| *value != RawJson::NULL)
    }

    /// Returns the number of elements of this array, zero if the value is not an array.
    pub(crate) fn element_count(&self) -> usize {
        let mut scanner = Scanner::new(self.as_str());
        if !scanner.eat(b'[') || scanner.eat(b']') {
            return 0;
        }
        let mut count = 1;
        loop {
            scanner.trusted_value();
            if !scanner.eat(b',') {
                return count;
            }
            count += 1;
        }
    }

    /// Calls `show` with each element of this array. Does nothing for other values.
    pub(crate) fn for_each_element(&self, mut show: impl FnMut(RawJson<'_>)) {
        let mut scanner = Scanner::new(self.as_str());
        if !scanner.eat(b'[') || scanner.eat(b']') {
            return;
        }
        loop {
            // Skips white space.
            scanner.peek();
            let start = scanner.at();
            scanner.trusted_value();
            show(RawJson::trusted(scanner.since(start)));
            if !scanner.eat(b',') {
                return;
            }
        }
    }

    /// Returns whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn elements_are_returned_in_order() {
        for (text, elements) in [
            (r#"[ "a" , 1.5,{"x":[1,2]} , ["," ]]"#, r#""a"|1.5|{"x":[1,2]}|["," ]"#),
            ("[ ]", ""),
            ("{}", ""),
            ("1", ""),
        ] {
            let value = RawJson::parse(text).unwrap();
            let mut found = Vec::new();
            value.for_each_element(|element| found.push(String::from(element.as_str())));
            assert_eq!(found.join("|"), elements, "{text}");
            assert_eq!(found.len(), value.element_count(), "{text}");
        }
    }

    #[test]
    fn members_are_returned_in_order_with_their_ranges() {
        let text = r#"{ "a" : [1, {"b":2}] ,"\u0062":"}","a":-1.5e3, "c":{} }"#;
        let object = RawJson::parse(text).expect("JSON");
        let members: Vec<_> = object.members().collect();
        let found: Vec<_> = members.iter().map(|m| (m.key, m.value.as_str())).collect();
        let expected =
            [("a", r#"[1, {"b":2}]"#), (r"\u0062", r#""}""#), ("a", "-1.5e3"), ("c", "{}")];
        assert_eq!(found, expected);
        for member in &members {
            assert_eq!(&text[member.range.clone()], member.value.as_str());
            assert_eq!(member.key_escaped, member.name() == "b");
        }
        assert_eq!(object.get("b"), Some(RawJson::trusted(r#""}""#)));
        assert_eq!(object.get("a"), Some(RawJson::trusted(r#"[1, {"b":2}]"#)));
        assert_eq!(object.get("d"), None);
        let object = RawJson::trusted(r#"{"a":null,"b":0}"#);
        assert_eq!(object.get("a"), Some(RawJson::NULL));
        assert_eq!((object.get_present("a"), object.get_present("c")), (None, None));
        assert_eq!(object.get_present("b"), Some(RawJson::trusted("0")));
    }

    #[test]
    fn only_objects_have_members() {
        for text in ["{}", "{ }", "[]", "[{\"a\":1}]", "1", "\"{\"", "null"] {
            assert_eq!(RawJson::trusted(text).members().count(), 0, "{text}");
        }
    }

    #[test]
    fn only_arrays_have_elements() {
        for (text, count) in
            [("[]", 0), ("[ ]", 0), ("[1]", 1), (r#"[ "a,b" , [1,2], {} ]"#, 3), ("{}", 0)]
        {
            assert_eq!(RawJson::trusted(text).element_count(), count, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_supported() {
        let text: String = ["{\"a\":", &"[".repeat(5000), &"]".repeat(5000), ",\"b\":1}"].concat();
        assert_eq!(RawJson::trusted(&text).get("b"), Some(RawJson::trusted("1")));
    }

    #[test]
    fn garbage_ends_the_iteration() {
        for text in [
            "",
            "{",
            "{\"",
            "{\"a",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":]",
            "{\"a\":1 1",
            "{,",
            "{\"a\":é",
        ] {
            assert!(RawJson::trusted(text).members().count() <= 1, "{text}");
        }
        let text = RawJson::trusted("{\"a\" \"b\":1}");
        let mut members = text.members();
        assert_eq!((members.next(), members.next()), (None, None));
    }
}
