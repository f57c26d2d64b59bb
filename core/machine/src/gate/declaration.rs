//! Reads declared capabilities member by member.
//!
//! Types for each shape would add about ten kilobytes to a firmware image.

use core::fmt;

use crate::envelope::{Entries, JsonText};

/// A declaration of capabilities cannot be read. The fault of the side that declares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidDeclaration {
    /// A capability is declared more than once.
    Repeated(&'static str),
    /// This member, or `capabilities` itself, is not an object.
    NotAnObject(&'static str),
    /// This flag is neither true nor false.
    NotAFlag(&'static str),
}

impl fmt::Display for InvalidDeclaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated(name) => write!(f, "the capability `{name}` is repeated"),
            Self::NotAnObject(name) => write!(f, "the capability `{name}` must be an object"),
            Self::NotAFlag(name) => write!(f, "the capability `{name}` must be true or false"),
        }
    }
}

impl core::error::Error for InvalidDeclaration {}

/// An object in a declaration, as text that was already checked to be JSON.
#[derive(Debug)]
pub(super) struct Declared<'a>(&'a str);

/// A member of a declaration, which may be absent. `null` and `false` count as absent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    name: &'static str,
    text: Option<&'a str>,
}

impl<'a> Declared<'a> {
    /// Wraps text that was already checked to be JSON.
    pub(super) fn checked(text: &'a str) -> Result<Self, InvalidDeclaration> {
        Self::from_text("capabilities", text)
    }

    fn from_text(name: &'static str, text: &'a str) -> Result<Self, InvalidDeclaration> {
        if text.starts_with('{') {
            Ok(Self(text))
        } else if is_empty(text) {
            Ok(Self("{}"))
        } else {
            Err(InvalidDeclaration::NotAnObject(name))
        }
    }

    /// Returns the members with these names, found in one pass. Repeated members are an error.
    pub(super) fn get<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[Value<'a>; N], InvalidDeclaration> {
        let mut values = names.map(|name| Value { name, text: None });
        self.find(&mut values)?;
        Ok(values)
    }

    // A separate function, so that its code is not duplicated for each number of names.
    fn find(&self, values: &mut [Value<'a>]) -> Result<(), InvalidDeclaration> {
        let mut members: Entries<'a> = JsonText::trusted(self.0).members();
        while let Some(member) = members.next_after("") {
            let found = values.iter_mut().find(|value| member.key.is(value.name));
            let Some(value) = found else { continue };
            if value.text.replace(member.value.as_str()).is_some() {
                return Err(InvalidDeclaration::Repeated(value.name));
            }
        }
        for value in values {
            value.text = value.text.filter(|text| !matches!(*text, "null" | "false"));
        }
        Ok(())
    }
}

/// Returns whether the text says no more than an empty object: `null`, `true`, or the empty array that
/// languages with one type for lists and maps write for an empty map.
fn is_empty(text: &str) -> bool {
    matches!(text, "null" | "true") || JsonText::trusted(text).is_empty_array()
}

impl<'a> Value<'a> {
    /// Returns whether the member is present, with any type.
    pub(super) const fn is_there(self) -> bool {
        self.text.is_some()
    }

    /// Returns the object, if the member is present.
    pub(super) fn object(self) -> Result<Option<Declared<'a>>, InvalidDeclaration> {
        self.text.map(|text| Declared::from_text(self.name, text)).transpose()
    }

    /// Returns whether the member is present and true.
    pub(super) fn flag(self) -> Result<bool, InvalidDeclaration> {
        match self.text {
            Some("true") => Ok(true),
            None => Ok(false),
            Some(_) => Err(InvalidDeclaration::NotAFlag(self.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_the_wrong_type_are_errors_and_null_is_absent() {
        let text = r#"{"a":{"on":true,"off":false,"n":null},"b":1,"c":[1],"t":true}"#;
        let [a, b, c, x, t] =
            Declared::checked(text).unwrap().get(["a", "b", "c", "x", "t"]).unwrap();
        let inner = a.object().unwrap().unwrap();
        let [on, off, null, absent] = inner.get(["on", "off", "n", "x"]).unwrap();
        assert!(on.flag().unwrap() && !off.flag().unwrap() && !null.flag().unwrap());
        assert!(t.object().unwrap().is_some());
        assert!(!off.is_there() && !null.is_there() && !absent.is_there());
        assert!(x.object().unwrap().is_none());
        assert!(b.object().is_err() && c.object().is_err());
        assert!(b.flag().is_err() && a.flag().is_err());
        assert!(Declared::checked("[{}]").is_err());
    }

    #[test]
    fn an_empty_array_is_an_empty_object() {
        let [a, b] = Declared::checked(r#"{"a":[],"b":[ ]}"#).unwrap().get(["a", "b"]).unwrap();
        for object in [a.object(), b.object(), Declared::checked("[]").map(Some)] {
            let [x] = object.unwrap().unwrap().get(["x"]).unwrap();
            assert!(!x.is_there());
        }
    }

    #[test]
    fn a_repeated_capability_is_an_error() {
        let declared = Declared::checked(r#"{"a":{},"b":null,"\u0061":{},"b":null}"#).unwrap();
        assert!(declared.get(["a"]).is_err() && declared.get(["c", "b"]).is_err());
        assert!(declared.get(["c"]).is_ok());
    }
}
