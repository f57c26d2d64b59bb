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

use super::spellings::{Spellings, WholeNumbers};

/// Reads a JSON text as every kind of type that serde supports: each yields the value that
/// `serde_json` reads from the usual spelling of the text, or is refused by both. Invalid text is
/// read without panicking.
///
/// In the usual spelling, whole numbers have neither fraction nor exponent, and where a type wants
/// an integer or an object, a negative zero is zero and an empty array is an empty object.
pub fn values(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match RawJson::parse(text) {
        Ok(json) => {
            let read = Spellings::new(text, WholeNumbers::All);
            let kept = Spellings::new(text, WholeNumbers::None);
            scalars(&json, &read);
            floats_and_texts(&json, &kept);
            containers(&json, &read);
            derived(&json, &read);
            keyed(&json, &read, text.is_ascii());
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

/// Whether a type sees the text itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Always.
    Direct,
    /// Not always: serde buffers the values in flattened and untagged types, and does not know what
    /// they are read as. An unusual spelling may be refused.
    Buffered,
}

/// Reads the text as a type with both parsers. The value of ours is that which `serde_json` reads
/// from the first spelling, if it reads one, and else that of another spelling.
pub(super) fn same_as_serde_json<'t, T: Deserialize<'t> + Debug>(
    json: &'t RawJson<'_>,
    spellings: &'t Spellings,
    reading: Reading,
) {
    let written = |value: Option<T>| value.map(|value| format!("{value:?}"));
    let read = written(json.decode::<T>().ok());
    let mut expected = spellings.texts.iter().map(|it| written(serde_json::from_str::<T>(it).ok()));
    let first = expected.next().expect("a spelling");
    let kind = std::any::type_name::<T>();
    if first.is_some() || spellings.texts.len() == 1 {
        assert!(read == first, "{json} as {kind}: {read:?}, not {first:?}");
        return;
    }
    let others: Vec<String> = expected.flatten().collect();
    let agrees = match &read {
        Some(read) => others.contains(read) || !spellings.complete,
        None => others.is_empty() || reading == Reading::Buffered,
    };
    assert!(agrees, "{json} as {kind}: {read:?}, not one of {others:?}");
}

/// Lists the types that a text is read as.
macro_rules! read {
    ($json:ident, $text:ident, $reading:ident: $($ty:ty),+ $(,)?) => {
        $(same_as_serde_json::<$ty>($json, $text, Reading::$reading);)+
    };
}

fn scalars<'t>(json: &'t RawJson<'_>, text: &'t Spellings) {
    read!(json, text, Direct: (), bool, i8, i16, i32, i64, i128, u8, u16, u32, u64, u128, Number,
        char, String, &str, Cow<'_, str>, &[u8], CString, NonZeroU8, Unit, Newtype, Bytes);
}

/// Types that read a number as it is written.
// The floats of `serde_json` are not exact to the last bit, so they depend on the spelling.
fn floats_and_texts<'t>(json: &'t RawJson<'_>, text: &'t Spellings) {
    read!(json, text, Direct: f32, f64, Vec<Option<f64>>, &RawValue, Box<RawValue>, Vec<&RawValue>,
        BTreeMap<String, &RawValue>, RawJson<'_>, IgnoredAny);
}

fn containers<'t>(json: &'t RawJson<'_>, text: &'t Spellings) {
    read!(json, text, Direct: Value, IgnoredAny, Option<u8>, Option<Option<&str>>, Vec<Value>,
        Vec<Vec<u8>>, (u8, String), [i64; 2], (), Result<u8, String>, Duration,
        std::ops::Range<i8>, BTreeMap<String, Value>);
}

fn derived<'t>(json: &'t RawJson<'_>, text: &'t Spellings) {
    read!(json, text, Direct: Fields, Strict<'_>, Shape, Vec<Shape>, Nested);
    read!(json, text, Buffered: Untagged, Tagged, Adjacent, Flat);
}

fn keyed<'t>(json: &'t RawJson<'_>, text: &'t Spellings, is_ascii: bool) {
    // For a boolean key, `serde_json` 1.0.154 reads the key from its second byte on, possibly in
    // the middle of a character, and creates a string that is not UTF-8.
    if is_ascii {
        read!(json, text, Direct: BTreeMap<bool, IgnoredAny>);
    } else {
        let _refused = json.decode::<BTreeMap<bool, IgnoredAny>>().is_err();
    }
    read!(json, text, Direct: BTreeMap<i8, u8>, BTreeMap<u64, Value>, BTreeMap<i64, &str>,
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
