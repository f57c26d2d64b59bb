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
        let (name, fault) = match self {
            Self::Repeated(name) => (name, "` is repeated"),
            Self::NotAnObject(name) => (name, "` must be an object"),
            Self::NotAFlag(name) => (name, "` must be true or false"),
        };
        ["the capability `", name, fault].iter().try_for_each(|part| f.write_str(part))
    }
}

impl core::error::Error for InvalidDeclaration {}

/// An object in a declaration, as text that was already checked to be JSON.
#[derive(Debug)]
pub(super) struct Declared<'a>(&'a str);

/// A member of a declaration, which may be absent. `null` and `false` count as absent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Value<'a>(Option<&'a str>);

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
        let mut values = [Value::default(); N];
        self.find(&names, &mut values)?;
        Ok(values)
    }

    // A separate function, so that its code is not duplicated for each number of names.
    fn find(
        &self,
        names: &[&'static str],
        values: &mut [Value<'a>],
    ) -> Result<(), InvalidDeclaration> {
        let mut members: Entries<'a> = JsonText::trusted(self.0).members();
        while let Some(member) = members.next_after("") {
            let found = names.iter().zip(&mut *values).find(|(name, _)| member.key.is(name));
            let Some((name, value)) = found else { continue };
            if value.0.replace(member.value.as_str()).is_some() {
                return Err(InvalidDeclaration::Repeated(name));
            }
        }
        for value in values {
            value.0 = value.0.filter(|text| !matches!(*text, "null" | "false"));
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
        self.0.is_some()
    }

    /// Returns the object, if the member `name` is present.
    pub(super) fn object(
        self,
        name: &'static str,
    ) -> Result<Option<Declared<'a>>, InvalidDeclaration> {
        self.0.map(|text| Declared::from_text(name, text)).transpose()
    }

    /// Returns whether the member `name` is present and true.
    pub(super) fn flag(self, name: &'static str) -> Result<bool, InvalidDeclaration> {
        match self.0 {
            Some("true") => Ok(true),
            None => Ok(false),
            Some(_) => Err(InvalidDeclaration::NotAFlag(name)),
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
        let inner = a.object("x").unwrap().unwrap();
        let [on, off, null, absent] = inner.get(["on", "off", "n", "x"]).unwrap();
        assert!(on.flag("x").unwrap() && !off.flag("x").unwrap() && !null.flag("x").unwrap());
        assert!(t.object("x").unwrap().is_some());
        assert!(!off.is_there() && !null.is_there() && !absent.is_there());
        assert!(x.object("x").unwrap().is_none());
        assert!(b.object("x").is_err() && c.object("x").is_err());
        assert!(b.flag("x").is_err() && a.flag("x").is_err());
        assert!(Declared::checked("[{}]").is_err());
    }

    #[test]
    fn an_empty_array_is_an_empty_object() {
        let [a, b] = Declared::checked(r#"{"a":[],"b":[ ]}"#).unwrap().get(["a", "b"]).unwrap();
        for object in [a.object("x"), b.object("x"), Declared::checked("[]").map(Some)] {
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
