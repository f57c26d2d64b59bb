use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

use bytestring::ByteString;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeStruct, Serializer};

use super::deserializer::deserialize;
use super::envelope::read_id;
use super::id::RequestId;
use super::members::Members;
use super::scan::Scanner;
use super::serializer::{RAW_VALUE, serialize};
use super::text::unquote;

/// One JSON value as text, checked but not taken apart.
///
/// Borrows from the frame that it came in, or shares an allocation by reference count; a clone
/// never copies the text. Deserialise it straight into your own type with [`RawJson::decode`].
#[derive(Clone)]
pub struct RawJson<'a>(Text<'a>);

#[derive(Clone)]
enum Text<'a> {
    Borrowed(&'a str),
    Shared(ByteString),
}

impl<'a> RawJson<'a> {
    /// The empty object.
    pub const EMPTY_OBJECT: RawJson<'static> = RawJson(Text::Borrowed("{}"));
    /// `null`.
    pub const NULL: RawJson<'static> = RawJson(Text::Borrowed("null"));

    /// Checks that `text` is one JSON value with nothing after it.
    ///
    /// # Errors
    ///
    /// The caller's fault: `text` is not JSON.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut scanner = Scanner::new(text);
        scanner.peek();
        let start = scanner.at();
        let checked = scanner.deep_value().map(|()| scanner.since(start));
        let checked = checked.and_then(|value| scanner.end().map(|()| value));
        checked.map(Self::trusted).map_err(|_| {
            let at = scanner.at();
            serde_json::Error::custom(format_args!("not JSON, at byte {at}"))
        })
    }

    /// Serialises `value`.
    ///
    /// # Errors
    ///
    /// The caller's fault: the value cannot be JSON (a map whose keys are not strings, or a
    /// `Serialize` that fails).
    pub fn from_serialize<T: Serialize + ?Sized>(
        value: &T,
    ) -> Result<RawJson<'static>, serde_json::Error> {
        // Not with `serde_json`'s own: every message would be compiled for two serializers.
        let mut text = String::new();
        serialize(&mut text, value)?;
        Ok(Self::trusted_shared(text.into()))
    }

    /// Text that the caller knows to be one JSON value. It is not checked: with any other text what is
    /// written of it cannot be read by the other side.
    #[must_use]
    pub const fn trusted(text: &'a str) -> Self {
        Self(Text::Borrowed(text))
    }

    /// The same, of text that is handed over.
    #[must_use]
    pub fn trusted_string(text: String) -> RawJson<'static> {
        RawJson(Text::Shared(text.into()))
    }

    /// The same, of shared text.
    pub(crate) const fn trusted_shared(text: ByteString) -> RawJson<'static> {
        RawJson(Text::Shared(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }

    /// Deserialises the value; strings without escapes and nested [`RawJson`] borrow from it.
    ///
    /// # Errors
    ///
    /// The fault of whoever wrote the value: it does not have the shape of `T`. The error says what
    /// was expected, but no line and column.
    pub fn decode<'s, T: Deserialize<'s>>(&'s self) -> Result<T, serde_json::Error> {
        deserialize(self.as_str())
    }

    /// The same value, free of the frame's lifetime. Copies borrowed text, shares shared text.
    #[must_use]
    pub fn into_owned(self) -> RawJson<'static> {
        RawJson(Text::Shared(match self.0 {
            Text::Borrowed(text) => String::from(text).into(),
            Text::Shared(text) => text,
        }))
    }

    /// The members of an object in a received frame, each borrowing from the frame. What is not
    /// borrowed from one has none: see [`RawJson::members`] for that.
    pub(crate) fn walk(&self) -> Members<'a> {
        Members::new(self.frame_text())
    }

    /// The text where it is borrowed from a frame, else nothing.
    pub(crate) fn frame_text(&self) -> &'a str {
        match &self.0 {
            Text::Borrowed(text) => text,
            Text::Shared(_) => "",
        }
    }

    /// The text where it is shared.
    pub(crate) const fn shared(&self) -> Option<&ByteString> {
        match &self.0 {
            Text::Borrowed(_) => None,
            Text::Shared(text) => Some(text),
        }
    }

    /// The string that this value is, its escapes resolved; `None` if it is none.
    #[must_use]
    pub fn to_text(&self) -> Option<Cow<'a, str>> {
        match &self.0 {
            Text::Borrowed(text) => unquote(text),
            Text::Shared(text) => unquote(text).map(|text| Cow::Owned(text.into_owned())),
        }
    }

    /// The string that is all there is between `opening` and `closing`, its escapes resolved.
    pub(crate) fn string_between(&self, opening: &str, closing: &str) -> Option<Cow<'_, str>> {
        let text = self.as_str().strip_prefix(opening)?.strip_suffix(closing)?;
        let mut scanner = Scanner::new(text);
        let string = scanner.string()?;
        if scanner.at() == text.len() { string.resolve() } else { None }
    }

    /// The number that this value is; `None` if it is none, or none of this type.
    pub(crate) fn to_number<T: for<'de> Deserialize<'de>>(&self) -> Option<T> {
        // Of anything else there would be an error that repeats it, however long it is.
        let number =
            self.as_str().starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if number { self.decode().ok() } else { None }
    }

    /// The id that this value is, if it is one.
    pub(crate) fn to_id(&self) -> Option<RequestId> {
        read_id(self.as_str(), usize::MAX).ok()
    }

    /// The same value, borrowing from this one.
    #[must_use]
    pub fn borrow(&self) -> RawJson<'_> {
        RawJson(Text::Borrowed(self.as_str()))
    }
}

impl fmt::Debug for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for RawJson<'_> {
    /// Compares the text: values that differ in white space differ.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson<'_> {}

impl Serialize for RawJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // As `serde_json`'s own raw values do it, which would have the text checked once more.
        let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
        raw.serialize_field(RAW_VALUE, self.as_str())?;
        raw.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Takes what `serde_json` hands over as a raw value: a map of one text under the name of
        /// such values. Its own type takes a text that is borrowed, or one that is not.
        struct RawVisitor;

        impl<'de> Visitor<'de> for RawVisitor {
            type Value = RawJson<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any valid JSON value")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RawJson<'de>, M::Error> {
                match map.next_entry::<IgnoredAny, ValueText<'de>>()? {
                    Some((_, ValueText(Cow::Borrowed(text)))) => Ok(RawJson::trusted(text)),
                    Some((_, ValueText(Cow::Owned(text)))) => {
                        Ok(RawJson(Text::Shared(text.into())))
                    }
                    None => Err(de::Error::invalid_type(de::Unexpected::Map, &self)),
                }
            }
        }

        /// A text that is borrowed where the source allows.
        #[derive(serde::Deserialize)]
        #[serde(transparent)]
        struct ValueText<'a>(#[serde(borrow)] Cow<'a, str>);

        deserializer.deserialize_newtype_struct(RAW_VALUE, RawVisitor)
    }
}

/// One JSON value as text that owns itself: the form for fields of messages that outlive a frame.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(RawJson<'static>);

impl Json {
    /// See [`RawJson::from_serialize`].
    ///
    /// # Errors
    ///
    /// The caller's fault: the value cannot be JSON.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        RawJson::from_serialize(value).map(Self)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The value, borrowing from this one.
    #[must_use]
    pub fn as_raw(&self) -> RawJson<'_> {
        self.0.borrow()
    }

    /// Deserialises the value.
    ///
    /// # Errors
    ///
    /// The fault of whoever wrote the value: it does not have the shape of `T`.
    pub fn decode<'s, T: Deserialize<'s>>(&'s self) -> Result<T, serde_json::Error> {
        self.0.decode()
    }
}

impl From<RawJson<'_>> for Json {
    fn from(value: RawJson<'_>) -> Self {
        Self(value.into_owned())
    }
}

impl From<Json> for RawJson<'static> {
    fn from(value: Json) -> Self {
        value.0
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawJson::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::jsonrpc::scan::DEPTH_MAX;

    #[test]
    fn checked_text_is_one_value_without_surrounding_whitespace() {
        assert_eq!(RawJson::parse(" [1, 2]\n").expect("JSON").as_str(), "[1, 2]");
        for text in ["", " ", "[1", "1 2", "{\"a\":1}}", "nul"] {
            assert!(RawJson::parse(text).is_err(), "{text}");
        }
        let error = RawJson::parse("[1,}").expect_err("no value");
        assert_eq!(error.to_string(), "not JSON, at byte 3");
        let nested = |depth| ["[".repeat(depth), "]".repeat(depth)].concat();
        for depth in [DEPTH_MAX, DEPTH_MAX + 1, 2 * DEPTH_MAX, 2 * DEPTH_MAX + 1, 5000] {
            assert!(RawJson::parse(&nested(depth)).is_ok(), "{depth}");
            assert!(RawJson::parse(&nested(depth)[1..]).is_err(), "{depth}");
            assert!(RawJson::parse(&nested(depth)[..2 * depth - 1]).is_err(), "{depth}");
        }
        let mixed = |depth| [r#"[{"a":[0,"#.repeat(depth), "]},1]".repeat(depth)].concat();
        assert!(RawJson::parse(&mixed(1000).replace("0,]", "0]")).is_ok());
        assert!(RawJson::parse(&mixed(1000).replace("0,]", "0}")).is_err());
    }

    #[test]
    fn raw_text_passes_through_other_serializers_unchanged() {
        let text = r#"{"b": 1.0,"a":[]}"#;
        let value = RawJson::parse(text).expect("JSON");
        assert_eq!(serde_json::to_string(&value).expect("JSON"), text);
        assert_eq!(serde_json::to_value(&value).expect("JSON")["b"], 1.0);
    }
}
