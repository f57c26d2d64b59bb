//! What a side declares, read member by member.
//!
//! With types for each shape this would be some ten kilobytes of a device's image.

use serde::de::Error as _;
use serde_json::Error;

use crate::jsonrpc::RawJson;

/// An object of a declaration. Members that are `null` count as absent, unknown ones as well.
#[derive(Debug)]
pub(super) struct Declared<'a>(RawJson<'a>);

impl<'a> Declared<'a> {
    /// Reads a whole declaration.
    pub(super) fn parse(text: &'a str) -> Result<Self, Error> {
        Self::of(RawJson::parse(text)?)
    }

    /// The same of text that is known to be JSON.
    pub(super) fn checked(text: &'a str) -> Result<Self, Error> {
        Self::of(RawJson::trusted(text))
    }

    fn of(value: RawJson<'a>) -> Result<Self, Error> {
        if value.is_object() { Ok(Self(value)) } else { Err(wrong("an object")) }
    }

    /// The member called `name`, which may be there once.
    fn get(&self, name: &str) -> Result<Option<RawJson<'_>>, Error> {
        let mut named = self.0.members().filter(|member| member.is_named(name));
        let value = named.next().map(|member| member.value);
        if named.next().is_some() {
            return Err(Error::custom(format_args!("the capability `{name}` is repeated")));
        }
        Ok(value.filter(|value| value.as_str() != "null"))
    }

    /// Whether there is a member, of whatever type.
    pub(super) fn has(&self, name: &str) -> Result<bool, Error> {
        Ok(self.get(name)?.is_some())
    }

    /// The object that a member is, if it is there.
    pub(super) fn object(&self, name: &str) -> Result<Option<Declared<'_>>, Error> {
        self.get(name)?.map(Declared::of).transpose()
    }

    /// Whether a member is there and true.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Error> {
        match self.get(name)?.as_ref().map(RawJson::as_str) {
            Some("true") => Ok(true),
            Some("false") | None => Ok(false),
            Some(_) => Err(wrong("true or false")),
        }
    }
}

fn wrong(expected: &'static str) -> Error {
    Error::custom(format_args!("a capability that is not {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_the_wrong_type_are_errors_and_null_is_absence() {
        let text = r#"{"a":{"on":true,"off":false,"n":null},"b":1,"c":[]}"#;
        let declared = Declared::parse(text).unwrap();
        let a = declared.object("a").unwrap().unwrap();
        assert!(a.flag("on").unwrap() && !a.flag("off").unwrap() && !a.flag("n").unwrap());
        assert!(a.has("off").unwrap() && !a.has("n").unwrap() && !a.has("x").unwrap());
        assert!(declared.object("x").unwrap().is_none());
        assert!(declared.object("b").is_err() && declared.object("c").is_err());
        assert!(declared.flag("b").is_err() && declared.flag("a").is_err());
        assert!(Declared::parse("[]").is_err() && Declared::parse("{").is_err());
    }

    #[test]
    fn a_repeated_capability_is_an_error() {
        let declared = Declared::parse(r#"{"a":{},"b":true,"\u0061":{},"b":true}"#).unwrap();
        assert!(declared.object("a").is_err() && declared.has("a").is_err());
        assert!(declared.flag("b").is_err() && !declared.has("c").unwrap());
    }
}
