//! Values: reads a JSON text as every kind of Rust type, and compares with `serde_json`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt::Debug;
use std::num::NonZeroU8;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use mcp_sansio::jsonrpc::RawJson;

use super::envelope::with_whole_numbers;

/// Reads a JSON text as every kind of type that serde supports: each yields the value of
/// `serde_json`, or is refused by both. Invalid text is read without panicking.
///
/// Whole numbers with a fraction or an exponent are read as integers, and `[]` as an empty object
/// where one is expected. A text with one of these may have another value than `serde_json` reads.
pub fn values(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match RawJson::parse(text) {
        Ok(json) => {
            scalars(&json, text);
            containers(&json, text);
            derived(&json, text);
            keyed(&json, text);
        }
        Err(_) => read_anyway(&RawJson::trusted(text)),
    }
}

/// Decodes invalid text, which the parser normally excludes. It may be refused or misread, but not
/// panic.
fn read_anyway(json: &RawJson<'_>) {
    let _read = json.decode::<Value>();
    let _read = json.decode::<Untagged>();
    let _read = json.decode::<Vec<Shape>>();
    let _read = json.decode::<BTreeMap<u8, &RawValue>>();
}

/// Reads the text as a type with both parsers.
pub(super) fn same_as_serde_json<'t, T: Deserialize<'t> + Debug>(
    json: &'t RawJson<'_>,
    text: &'t str,
) {
    let written = |value: Option<T>| value.map(|value| format!("{value:?}"));
    let read = written(json.decode::<T>().ok());
    let expected = written(serde_json::from_str::<T>(text).ok());
    assert!(read == expected || is_unusual(text), "{text}: {read:?}, not {expected:?}");
}

/// Returns whether the text may have a whole number that is not written as an integer, a negative
/// zero, or an empty array.
fn is_unusual(text: &str) -> bool {
    let has_empty_array = text.split('[').skip(1).any(|rest| rest.trim_start().starts_with(']'));
    has_empty_array || text.contains("-0") || with_whole_numbers(text) != text
}

/// Lists the types that a text is read as.
macro_rules! read {
    ($json:ident, $text:ident: $($ty:ty),+ $(,)?) => {
        $(same_as_serde_json::<$ty>($json, $text);)+
    };
}

fn scalars<'t>(json: &'t RawJson<'_>, text: &'t str) {
    read!(json, text: (), bool, i8, i16, i32, i64, i128, u8, u16, u32, u64, u128, f32, f64, Number,
        char, String, &str, Cow<'_, str>, &[u8], CString, NonZeroU8, Unit, Newtype, Bytes);
}

fn containers<'t>(json: &'t RawJson<'_>, text: &'t str) {
    read!(json, text: Value, IgnoredAny, &RawValue, Box<RawValue>, Option<u8>, Option<Option<&str>>,
        Vec<Value>, Vec<&RawValue>, Vec<Vec<u8>>, Vec<Option<f64>>, (u8, String), [i64; 2], (),
        Result<u8, String>, Duration, std::ops::Range<i8>, BTreeMap<String, Value>,
        BTreeMap<String, &RawValue>, RawJson<'_>);
}

fn derived<'t>(json: &'t RawJson<'_>, text: &'t str) {
    read!(json, text: Fields, Strict<'_>, Shape, Vec<Shape>, Untagged, Tagged, Adjacent, Flat, Nested);
}

fn keyed<'t>(json: &'t RawJson<'_>, text: &'t str) {
    // For a boolean key, `serde_json` 1.0.154 reads the key from its second byte on, possibly in
    // the middle of a character, and creates a string that is not UTF-8.
    if text.is_ascii() {
        read!(json, text: BTreeMap<bool, IgnoredAny>);
    } else {
        let _refused = json.decode::<BTreeMap<bool, IgnoredAny>>().is_err();
    }
    read!(json, text: BTreeMap<i8, u8>, BTreeMap<u64, Value>, BTreeMap<i64, &str>,
        BTreeMap<i128, IgnoredAny>, BTreeMap<u128, IgnoredAny>,
        BTreeMap<char, IgnoredAny>, BTreeMap<&str, IgnoredAny>, BTreeMap<&[u8], IgnoredAny>,
        BTreeMap<Option<u8>, IgnoredAny>, BTreeMap<Newtype, IgnoredAny>, BTreeMap<Key, IgnoredAny>,
        BTreeMap<Fraction, IgnoredAny>, BTreeMap<(), IgnoredAny>, BTreeMap<(u8,), IgnoredAny>);
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Unit;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Newtype(u16);

#[derive(Debug, PartialEq, Deserialize)]
struct Bytes(Vec<u8>);

#[derive(Debug, PartialEq, Deserialize)]
struct Fields {
    a: u8,
    b: Option<String>,
    #[serde(default)]
    c: Vec<i32>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Strict<'a> {
    a: &'a str,
    #[serde(borrow)]
    b: Option<Cow<'a, str>>,
}

#[derive(Debug, PartialEq, Deserialize)]
enum Shape {
    #[serde(rename = "a")]
    Unit,
    #[serde(rename = "b")]
    Newtype(u8),
    #[serde(rename = "c")]
    Tuple(u8, String),
    #[serde(rename = "d")]
    Struct { a: u8, b: Option<String> },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Fraction(f64),
    Text(String),
    Fields(Fields),
    Many(Vec<Self>),
    Other(BTreeMap<u8, Self>),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "a", rename_all = "lowercase")]
enum Tagged {
    A,
    B { b: f64 },
    C(Fields),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "a", content = "b", rename_all = "lowercase")]
enum Adjacent {
    A,
    B(u8),
    C { c: Option<bool> },
}

#[derive(Debug, PartialEq, Deserialize)]
struct Flat {
    a: Option<u64>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Nested {
    a: Option<Box<Self>>,
    #[serde(default)]
    b: Vec<Self>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Key {
    A,
    B,
}

/// A floating-point number as a key.
#[derive(Debug, Deserialize)]
struct Fraction(f64);

impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fraction {}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
