use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;

use serde::de::{self, Expected, Unexpected};
use serde::ser;

use super::omission::{Omission, excerpt, pointer_to};
use crate::envelope::write_string;

/// A value could not be read from JSON or written as JSON.
///
/// The message names the expected type and, except on bare metal, the place as a JSON Pointer, such
/// as `/tools/3/name`. It has at most [`LENGTH_MAX`](Self::LENGTH_MAX) bytes.
// Not the error of `serde_json`, which takes five kilobytes of a device image, mostly for the lines
// and columns.
// One word long, because almost every function that reads or writes JSON returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError(Box<Box<str>>);

/// Whether errors name places, and types in the terms of JSON. Programs without an operating system do
/// not: devices have little flash for the code.
const IN_DETAIL: bool = cfg!(not(target_os = "none"));

/// Longest excerpt of a value in a message, in bytes. 64: enough to recognize it.
const EXCERPT_MAX: usize = 64;

impl JsonError {
    /// Longest message in bytes. 2,048: room for the names of an enumeration, and not too much for a
    /// model, which reads the errors of its arguments.
    pub const LENGTH_MAX: usize = 2048;

    #[cold]
    fn new(mut message: String) -> Self {
        message.truncate(excerpt(&message, Self::LENGTH_MAX).len());
        Self(Box::new(message.into()))
    }

    fn mismatch(kind: &str, found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (found, expected) = (Found(found), expected.to_string());
        let expected = in_terms_of_json(&expected);
        de::Error::custom(format_args!("invalid {kind}: {found}, expected {expected}"))
    }

    /// Adds the place where it occurred: the value at `offset` of `text`.
    #[cold]
    pub(super) fn located(self, text: &str, offset: usize) -> Self {
        if !IN_DETAIL {
            return self;
        }
        let pointer = pointer_to(text, offset);
        let pointer = excerpt(&pointer, Omission::LENGTH_MAX);
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
        Self::new(message.to_string())
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

/// Returns the description of a type without names of Rust, which mean nothing to the author of the
/// value.
fn in_terms_of_json(expected: &str) -> &str {
    match expected {
        _ if expected.starts_with("struct ") => "an object",
        _ if !IN_DETAIL => expected,
        _ if expected.starts_with("enum ") => "a string or an object",
        "a map" => "an object",
        "a sequence" => "an array",
        "i8" => "an integer from -128 to 127",
        "i16" => "an integer from -32768 to 32767",
        "i32" => "an integer from -2147483648 to 2147483647",
        "i64" | "i128" | "isize" => "an integer",
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "u128" | "usize" => "an integer of 0 or more",
        "f32" | "f64" => "a number",
        _ if expected.starts_with("a nonzero ") => "an integer other than 0",
        _ => expected,
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
            Unexpected::Float(_) => f.write_str("number"),
            Unexpected::Unit => f.write_str("null"),
            Unexpected::Map => f.write_str("object"),
            Unexpected::Seq => f.write_str("array"),
            Unexpected::Str(text) => {
                let mut quoted = String::new();
                write_string(&mut quoted, excerpt(text, EXCERPT_MAX));
                write!(f, "string {quoted}")
            }
            other => other.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use crate::jsonrpc::{Json, JsonError, RawJson};

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
            ("0.5", "number"),
            (r#""a\"\u00e9""#, r#"string "a\"é""#),
            ("{}", "object"),
        ] {
            let expected = alloc::format!("invalid type: {found}, expected an array");
            assert_eq!(message::<Vec<u8>>(text), expected);
        }
        for (text, message) in [
            (message::<u8>("[]"), "invalid type: array, expected an integer from 0 to 255"),
            (
                message::<u8>("256"),
                "invalid value: integer `256`, expected an integer from 0 to 255",
            ),
            (
                message::<i32>("2147483648"),
                "invalid value: integer `2147483648`, expected an integer from -2147483648 to 2147483647",
            ),
            (
                message::<core::num::NonZeroU8>("0"),
                "invalid value: integer `0`, expected an integer other than 0",
            ),
            (message::<u64>("-1"), "invalid value: integer `-1`, expected an integer of 0 or more"),
            (
                message::<i16>("null"),
                "invalid type: null, expected an integer from -32768 to 32767",
            ),
            (message::<f64>(r#""2""#), r#"invalid type: string "2", expected a number"#),
            (message::<String>("{}"), "invalid type: object, expected a string"),
            (message::<bool>("0"), "invalid type: integer `0`, expected a boolean"),
            (message::<BTreeMap<String, u8>>("0"), "invalid type: integer `0`, expected an object"),
            (message::<Unit>("0"), "invalid type: integer `0`, expected a string or an object"),
            (message::<Unit>(r#""mile""#), "unknown variant `mile`, expected `meter` or `degrees`"),
        ] {
            assert_eq!(text, message);
        }
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "snake_case")]
    enum Unit {
        Meter,
        Degrees {
            #[expect(dead_code, reason = "only its decoding is wanted")]
            kelvin: u8,
        },
    }

    #[test]
    fn a_message_is_bounded_whatever_the_value_is() {
        let long = "é".repeat(100_000);
        let quoted = alloc::format!("\"{long}\"");
        let member = alloc::format!("{{\"{long}\":0}}");
        let nested = alloc::format!("{{\"degrees\":{member}}}");
        let dated: Result<Dated, _> = RawJson::trusted(&quoted).decode();
        for message in [
            RawJson::trusted(&quoted).decode::<u8>().expect_err("refused"),
            RawJson::trusted(&quoted).decode::<Unit>().expect_err("refused"),
            RawJson::trusted(&member).decode::<Unit>().expect_err("refused"),
            RawJson::trusted(&nested).decode::<Unit>().expect_err("refused"),
            RawJson::trusted(&member).decode::<BTreeMap<String, bool>>().expect_err("refused"),
            dated.expect_err("refused"),
        ] {
            let message = message.to_string();
            assert!(message.len() <= JsonError::LENGTH_MAX && message.contains("éé"), "{message}");
        }
    }

    /// Has an error of its own, which quotes the value.
    #[derive(Debug)]
    struct Dated;

    impl<'de> Deserialize<'de> for Dated {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            Err(serde::de::Error::custom(alloc::format!("`{text}` is no date")))
        }
    }

    #[test]
    fn a_value_without_a_json_form_is_named() {
        let keys = BTreeMap::from([((), 1)]);
        let error = Json::from_serialize(&keys).expect_err("refused");
        assert_eq!(error.to_string(), "key must be a string");
    }
}
