//! Reads declared capabilities member by member.
//!
//! Types for each shape would add about ten kilobytes to a firmware image.

use serde::de::Error as _;

use crate::jsonrpc::{JsonError as Error, Members, RawJson};

/// An object in a declaration, as text that was already checked to be JSON.
#[derive(Debug)]
pub(super) struct Declared<'a>(&'a str);

/// A member of a declaration, which may be absent. `null` counts as absent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Value<'a>(Option<&'a str>);

impl<'a> Declared<'a> {
    /// Parses a complete declaration.
    pub(super) fn parse(text: &'a str) -> Result<Self, Error> {
        Self::from_text(RawJson::parse(text)?.frame_text())
    }

    /// Wraps text that was already checked to be JSON.
    pub(super) fn checked(text: &'a str) -> Result<Self, Error> {
        Self::from_text(text)
    }

    fn from_text(text: &'a str) -> Result<Self, Error> {
        if text.starts_with('{') || is_empty(text) {
            Ok(Self(text))
        } else {
            Err(wrong("an object"))
        }
    }

    /// Returns the members with these names, found in one pass. Repeated members are an error.
    pub(super) fn get<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[Value<'a>; N], Error> {
        let mut values = [Value::default(); N];
        self.find(&names, &mut values)?;
        Ok(values)
    }

    // A separate function, so that its code is not duplicated for each number of names.
    fn find(&self, names: &[&'static str], values: &mut [Value<'a>]) -> Result<(), Error> {
        for member in Members::new(self.0) {
            let found = names.iter().zip(&mut *values).find(|(name, _)| member.is_named(name));
            let Some((name, value)) = found else { continue };
            if value.0.replace(member.value.frame_text()).is_some() {
                return Err(Error::custom(format_args!("the capability `{name}` is repeated")));
            }
        }
        for value in values {
            value.0 = value.0.filter(|text| *text != "null");
        }
        Ok(())
    }
}

/// Returns whether the text says no more than an empty object: `null`, or the empty array that
/// languages with one type for lists and maps write for an empty map.
fn is_empty(text: &str) -> bool {
    text == "null" || RawJson::trusted(text).is_empty_array()
}

impl<'a> Value<'a> {
    /// Returns whether the member is present, with any type.
    pub(super) const fn is_there(self) -> bool {
        self.0.is_some()
    }

    /// Returns the object, if the member is present.
    pub(super) fn object(self) -> Result<Option<Declared<'a>>, Error> {
        self.0.map(Declared::from_text).transpose()
    }

    /// Returns whether the member is present and true.
    pub(super) fn flag(self) -> Result<bool, Error> {
        match self.0 {
            Some("true") => Ok(true),
            Some("false") | None => Ok(false),
            Some(_) => Err(wrong("true or false")),
        }
    }
}

fn wrong(expected: &'static str) -> Error {
    Error::custom(format_args!("a capability must be {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_the_wrong_type_are_errors_and_null_is_absent() {
        let text = r#"{"a":{"on":true,"off":false,"n":null},"b":1,"c":[1]}"#;
        let [a, b, c, x] = Declared::parse(text).unwrap().get(["a", "b", "c", "x"]).unwrap();
        let inner = a.object().unwrap().unwrap();
        let [on, off, null, absent] = inner.get(["on", "off", "n", "x"]).unwrap();
        assert!(on.flag().unwrap() && !off.flag().unwrap() && !null.flag().unwrap());
        assert!(off.is_there() && !null.is_there() && !absent.is_there());
        assert!(x.object().unwrap().is_none());
        assert!(b.object().is_err() && c.object().is_err());
        assert!(b.flag().is_err() && a.flag().is_err());
        assert!(Declared::parse("[{}]").is_err() && Declared::parse("{").is_err());
    }

    #[test]
    fn an_empty_array_is_an_empty_object() {
        let [a, b] = Declared::parse(r#"{"a":[],"b":[ ]}"#).unwrap().get(["a", "b"]).unwrap();
        for object in [a.object(), b.object(), Declared::parse("[]").map(Some)] {
            let [x] = object.unwrap().unwrap().get(["x"]).unwrap();
            assert!(!x.is_there());
        }
    }

    #[test]
    fn a_repeated_capability_is_an_error() {
        let declared = Declared::parse(r#"{"a":{},"b":null,"\u0061":{},"b":null}"#).unwrap();
        assert!(declared.get(["a"]).is_err() && declared.get(["c", "b"]).is_err());
        assert!(declared.get(["c"]).is_ok());
    }
}
