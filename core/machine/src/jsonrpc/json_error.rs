use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;

use serde::de::{self, Expected, Unexpected};
use serde::ser;

use super::omission::pointer_to;
use crate::envelope::write_string;

/// A value could not be read from JSON or written as JSON.
///
/// The message names the expected type and, except on bare metal, the place as a JSON Pointer, such
/// as `/tools/3/name`.
// Not the error of `serde_json`, which takes five kilobytes of a device image, mostly for the lines
// and columns.
// One word long, because almost every function that reads or writes JSON returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError(Box<Box<str>>);

/// Whether errors name places. Programs without an operating system do not: devices have little
/// flash for the code.
const PLACES_ARE_NAMED: bool = cfg!(not(target_os = "none"));

impl JsonError {
    fn mismatch(kind: &str, found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (found, expected) = (Found(found), expected.to_string());
        // The names of types mean nothing to the author of the value.
        let expected = if expected.starts_with("struct ") { "an object" } else { &expected };
        de::Error::custom(format_args!("invalid {kind}: {found}, expected {expected}"))
    }

    /// Adds the place where it occurred: the value at `offset` of `text`.
    #[cold]
    pub(super) fn located(self, text: &str, offset: usize) -> Self {
        let pointer = if PLACES_ARE_NAMED { pointer_to(text, offset) } else { String::new() };
        if pointer.is_empty() {
            return self;
        }
        // A value that was decoded on its own has an error that names the place in it.
        let (end, rest) = match self.0.strip_prefix("`/") {
            Some(rest) => ("/", rest),
            None => ("`: ", &**self.0),
        };
        de::Error::custom(format_args!("`{pointer}{end}{rest}"))
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for JsonError {}

impl de::Error for JsonError {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(Box::new(message.to_string().into()))
    }

    #[cold]
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::mismatch("type", found, expected)
    }

    #[cold]
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::mismatch("value", found, expected)
    }
}

impl ser::Error for JsonError {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        de::Error::custom(message)
    }
}

/// The value that was found instead, in the terms of JSON.
// The formats of `Unexpected` for numbers and strings are those of Rust, which take seven and two
// kilobytes of a device image.
struct Found<'a>(Unexpected<'a>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Float(_) => f.write_str("floating point number"),
            Unexpected::Unit => f.write_str("null"),
            Unexpected::Str(text) => {
                let mut quoted = String::new();
                write_string(&mut quoted, text);
                write!(f, "string {quoted}")
            }
            other => other.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    use serde::de::DeserializeOwned;

    use crate::jsonrpc::{Json, RawJson};

    fn message<T: DeserializeOwned>(text: &'static str) -> String {
        RawJson::trusted(text).decode::<T>().err().expect("refused").to_string()
    }

    #[test]
    fn what_does_not_fit_is_named_in_the_terms_of_json() {
        for (text, found) in [
            ("null", "null"),
            ("true", "boolean `true`"),
            ("7", "integer `7`"),
            ("-7", "integer `-7`"),
            ("0.5", "floating point number"),
            (r#""a\"\u00e9""#, r#"string "a\"é""#),
            ("{}", "map"),
        ] {
            let expected = alloc::format!("invalid type: {found}, expected a sequence");
            assert_eq!(message::<Vec<u8>>(text), expected);
        }
        assert_eq!(message::<u8>("[]"), "invalid type: sequence, expected u8");
        assert_eq!(message::<u8>("256"), "invalid value: integer `256`, expected u8");
    }

    #[test]
    fn a_value_without_a_json_form_is_named() {
        let keys = alloc::collections::BTreeMap::from([((), 1)]);
        let error = Json::from_serialize(&keys).expect_err("refused");
        assert_eq!(error.to_string(), "key must be a string");
    }
}
