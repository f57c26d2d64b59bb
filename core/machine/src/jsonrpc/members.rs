use alloc::borrow::Cow;
use core::iter::FusedIterator;
use core::ops::Range;

use super::raw::RawJson;
use super::scan::Scanner;
use super::text::{key_is, resolve_key};

/// The members of an object in their order. Other values have none.
///
/// Linear in the length of the object over a whole iteration; nothing is allocated.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    scanner: Scanner<'a>,
}

/// One member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The key as it is written, without its quotes.
    pub key: &'a str,
    /// Whether the key is written with escapes, so that [`Member::name`] differs from it.
    pub key_escaped: bool,
    /// The value.
    pub value: RawJson<'a>,
    /// Where the value stands in the text of the object, in bytes.
    pub range: Range<usize>,
}

impl<'a> Member<'a> {
    /// The key with its escapes resolved; borrowed when there are none.
    #[inline]
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        if self.key_escaped { resolve_key(self.key) } else { Cow::Borrowed(self.key) }
    }

    /// Whether the key, its escapes resolved, is `name`.
    #[inline]
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.key == name || (self.key_escaped && key_is(self.key, name))
    }
}

impl<'a> Members<'a> {
    /// The members of `text`, which is one JSON value without white space before it.
    pub(crate) fn new(text: &'a str) -> Self {
        let mut scanner = Scanner::new(text);
        if !scanner.eat(b'{') {
            scanner = Scanner::new("");
        }
        Self { scanner }
    }

    /// The members of an object without the first of them: `text` is what follows these.
    pub(crate) fn after(text: &'a str) -> Self {
        let mut scanner = Scanner::new(text);
        scanner.eat(b',');
        Self { scanner }
    }

    /// The next member. A value that starts with `start` is read from there on only: whole members
    /// of an object, its brace before them, the last of which is no number.
    // In place where it is called: walks over the parameters of a message are the larger part of
    // what reading it takes.
    #[inline(always)]
    pub(crate) fn next_after(&mut self, start: &str) -> Option<Member<'a>> {
        let Some(key) = self.scanner.key() else {
            // The end, or text that is no JSON after all: either way there is no going on.
            self.scanner = Scanner::new("");
            return None;
        };
        let at = self.scanner.at();
        self.scanner.trusted_value_after(start);
        let text = self.scanner.since(at);
        let range = at..self.scanner.at();
        self.scanner.eat(b',');
        Some(Member {
            key: key.text,
            key_escaped: key.escaped,
            value: RawJson::trusted(text),
            range,
        })
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
    /// The members of this object in their order; nothing when it is not an object.
    #[must_use]
    pub fn members(&self) -> Members<'_> {
        Members::new(self.as_str())
    }

    /// The first member called `name`. Linear in the length of the object.
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

    /// How many elements this array has; none when it is no array.
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

    /// Whether the value is an object.
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
    fn members_come_in_order_with_their_place() {
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
    }

    #[test]
    fn other_values_have_no_members() {
        for text in ["{}", "{ }", "[]", "[{\"a\":1}]", "1", "\"{\"", "null"] {
            assert_eq!(RawJson::trusted(text).members().count(), 0, "{text}");
        }
    }

    #[test]
    fn elements_are_counted_and_other_values_have_none() {
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
