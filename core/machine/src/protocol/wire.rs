//! Serialization of messages at a revision.
//!
//! Reading is lenient and independent of the revision: unknown fields are ignored, and a missing
//! optional field is the same as `null`. Writing is exact: a field, a word or a kind of content
//! that the revision does not support is omitted, converted, or refused.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, EnumAccess, VariantAccess as _, Visitor};
use serde::ser::{Error as _, Serialize, SerializeSeq, Serializer};

use super::Revision;
use crate::jsonrpc::{
    AsJson, Json, JsonError, List, RawJson, RequestId, UNION, WriteError, WriteJson,
};

/// A value that can be serialized at any revision of the protocol.
///
/// [`SerializeAt::at`] binds it to a revision, which gives a [`Serialize`];
/// [`SerializeAt::to_json_at`] returns the text.
pub trait SerializeAt {
    /// Serializes the value in the form of `revision`.
    ///
    /// # Errors
    ///
    /// The value contains something that the revision cannot express (the message is that of
    /// `NotExpressible`), or a number that is not finite.
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error>;

    /// Returns whether a field with this value is omitted: only for `None`.
    fn is_absent(&self) -> bool {
        false
    }

    /// Returns whether a modern revision writes this as an object with a `resultType` and without
    /// the other members that any result may have, so that they need not be searched for.
    #[doc(hidden)]
    fn is_plain_result(&self) -> bool {
        false
    }

    /// Returns the part of a tool's result that its output schema applies to.
    #[doc(hidden)]
    fn tool_output(&self) -> ToolOutput<'_> {
        ToolOutput::Unknown
    }

    /// Binds the value to a revision.
    fn at(&self, revision: Revision) -> AtRevision<'_, Self> {
        AtRevision(self, revision)
    }

    /// Returns the JSON text of the value at `revision`.
    ///
    /// # Errors
    ///
    /// Those of [`SerializeAt::serialize_at`].
    fn to_json_at(&self, revision: Revision) -> Result<Json, JsonError> {
        Json::from_serialize(&self.at(revision))
    }
}

/// The part of a tool's result that its output schema applies to.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ToolOutput<'a> {
    /// Not known to be the result of a tool.
    Unknown,
    /// An error, described in text.
    Failed,
    /// Only unstructured content.
    Unstructured,
    /// Structured content.
    Structured(&'a Json),
}

/// A value and the revision at which it is written.
pub struct AtRevision<'a, T: ?Sized>(pub &'a T, pub Revision);

impl<T: SerializeAt + ?Sized> Serialize for AtRevision<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_at(self.1, serializer)
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for AtRevision<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AtRevision").field(&self.0).field(&self.1).finish()
    }
}

/// A value that is written at a revision chosen by the machine: any [`SerializeAt`] value, or
/// [`Verbatim`] JSON.
pub trait WriteJsonAt {
    /// Appends the value in the form of `revision`.
    ///
    /// # Errors
    ///
    /// See [`WriteError`].
    fn write_json_at(&self, revision: Revision, out: &mut String) -> Result<(), WriteError>;

    /// See [`SerializeAt::is_plain_result`].
    #[doc(hidden)]
    fn is_plain(&self) -> bool {
        false
    }

    /// See [`SerializeAt::tool_output`].
    #[doc(hidden)]
    fn output(&self) -> ToolOutput<'_> {
        ToolOutput::Unknown
    }

    /// Returns the value, if it is the same JSON text at every revision.
    #[doc(hidden)]
    fn as_raw_json(&self) -> Option<&RawJson<'_>> {
        None
    }
}

impl fmt::Debug for dyn WriteJsonAt + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteJsonAt(..)")
    }
}

impl<T: SerializeAt + ?Sized> WriteJsonAt for T {
    fn write_json_at(&self, revision: Revision, out: &mut String) -> Result<(), WriteError> {
        AsJson(&AtRevision(self, revision)).write_json(out)
    }

    fn is_plain(&self) -> bool {
        self.is_plain_result()
    }

    fn output(&self) -> ToolOutput<'_> {
        self.tool_output()
    }
}

/// JSON that the caller provides, which is the same at every revision.
#[derive(Clone, Copy, Debug)]
pub struct Verbatim<'a, T: ?Sized>(pub &'a T);

impl<T: WriteJson + ?Sized> WriteJsonAt for Verbatim<'_, T> {
    fn write_json_at(&self, _: Revision, out: &mut String) -> Result<(), WriteError> {
        self.0.write_json(out)
    }

    fn as_raw_json(&self) -> Option<&RawJson<'_>> {
        self.0.as_raw_json()
    }
}

/// A [`WriteJsonAt`] value bound to a revision.
pub(crate) struct JsonAtRevision<'a>(pub(crate) &'a dyn WriteJsonAt, pub(crate) Revision);

impl WriteJson for JsonAtRevision<'_> {
    fn write_json(&self, out: &mut String) -> Result<(), WriteError> {
        self.0.write_json_at(self.1, out)
    }

    fn as_raw_json(&self) -> Option<&RawJson<'_>> {
        self.0.as_raw_json()
    }
}

/// The revision cannot express the value, and omitting the part would change its meaning.
///
/// Serializers have their own error types, so it is reported as their message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be expressed in protocol revision {revision}")]
#[non_exhaustive]
pub(crate) struct NotExpressible {
    /// The part that cannot be expressed.
    pub what: &'static str,
    /// The revision that cannot express it.
    pub revision: Revision,
}

impl NotExpressible {
    pub(crate) const fn new(what: &'static str, revision: Revision) -> Self {
        Self { what, revision }
    }
}

/// Sets of revisions under the names that the macros of [`super::message`] use.
pub(crate) mod rev {
    use crate::gate::{Revision, Revisions};

    pub(crate) const ALL: Revisions = Revisions::ALL;
    pub(crate) const LEGACY: Revisions = Revisions::LEGACY;
    pub(crate) const MODERN: Revisions = Revisions::MODERN;
    pub(crate) const SINCE_2025_03_26: Revisions = Revisions::since(Revision::V2025_03_26);
    pub(crate) const SINCE_2025_06_18: Revisions = Revisions::since(Revision::V2025_06_18);
    /// The schemas have `extensions` since 2026-07-28. Two revisions before it, clients and servers
    /// declare extensions in the handshake all the same.
    pub(crate) const EXTENSIONS: Revisions = SINCE_2025_06_18;
    pub(crate) const SINCE_2025_11_25: Revisions = Revisions::since(Revision::V2025_11_25);
    pub(crate) const ONLY_2025_11_25: Revisions = Revisions::only(Revision::V2025_11_25);
}

/// A string that borrows from its source if possible.
#[derive(serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Reads an optional string that borrows from its source if possible. The attribute `borrow` alone
/// has no effect inside an `Option`.
pub(crate) fn optional_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'de, str>>, D::Error> {
    Option::<Text<'de>>::deserialize(deserializer).map(|text| text.map(|text| text.0))
}

/// Reads the member that determines the kind of an object: its string, if it has one.
pub(crate) fn tag<'j>(
    json: &'j RawJson<'_>,
    name: &'static str,
) -> Result<Option<Cow<'j, str>>, JsonError> {
    let refuse = |what| Err(serde::de::Error::custom(format_args!("`{name}` {what}")));
    if !json.is_object() {
        return refuse("must be a member of an object");
    }
    let (mut found, mut members) = (None, json.members());
    while let Some(member) = members.next_after("") {
        if member.is_named(name) && found.replace(member.value).is_some() {
            return refuse("is repeated");
        }
    }
    match found.filter(|value| *value != RawJson::NULL) {
        None => Ok(None),
        Some(value) => {
            value.to_text().map_or_else(|| refuse("must be a string"), |tag| Ok(Some(tag)))
        }
    }
}

/// Reads a field with a default, where `null` is the same as absent.
pub(crate) fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads a field where `null` is a value and differs from absent.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// Returns whether the value is a JSON object.
pub(crate) fn is_object(json: &Json) -> bool {
    json.as_str().trim_ascii_start().starts_with('{')
}

/// Returns whether the value is a JSON Schema that allows only objects, according to its root
/// `type`.
pub(crate) fn is_object_schema(json: &Json) -> bool {
    #[derive(serde::Deserialize)]
    struct Root<'a> {
        #[serde(rename = "type", borrow)]
        kind: Text<'a>,
    }
    json.decode::<Root<'_>>().is_ok_and(|root| root.kind.0 == "object")
}

macro_rules! same_at_every_revision {
    ($($ty:ty),+ $(,)?) => { $(
        impl SerializeAt for $ty {
            fn serialize_at<S: Serializer>(
                &self,
                _: Revision,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                self.serialize(serializer)
            }
        }
    )+ };
}
same_at_every_revision!(
    bool,
    u32,
    i64,
    u64,
    str,
    String,
    Cow<'_, str>,
    Json,
    RawJson<'_>,
    RequestId
);

impl SerializeAt for f64 {
    /// Whole numbers are written without a fraction, as most peers expect.
    fn serialize_at<S: Serializer>(&self, _: Revision, serializer: S) -> Result<S::Ok, S::Error> {
        // Every whole number up to this one has an exact `f64`.
        const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;
        if !self.is_finite() {
            return Err(S::Error::custom("a number that is not finite cannot be written as JSON"));
        }
        let whole = *self as i64;
        if self.abs() <= WHOLE_MAX && whole as Self == *self {
            serializer.serialize_i64(whole)
        } else {
            serializer.serialize_f64(*self)
        }
    }
}

impl<T: SerializeAt> SerializeAt for Option<T> {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => value.serialize_at(revision, serializer),
            None => serializer.serialize_unit(),
        }
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: SerializeAt> SerializeAt for [T] {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.len()))?;
        for item in self {
            seq.serialize_element(&item.at(revision))?;
        }
        seq.end()
    }
}

impl<T: SerializeAt> SerializeAt for Vec<T> {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize_at(revision, serializer)
    }
}

macro_rules! same_as_target {
    ($($ty:ty),+) => { $(
        impl<T: SerializeAt + ?Sized> SerializeAt for $ty {
            fn serialize_at<S: Serializer>(
                &self,
                revision: Revision,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                (**self).serialize_at(revision, serializer)
            }

            fn is_absent(&self) -> bool {
                (**self).is_absent()
            }
        }
    )+ };
}
same_as_target!(&T, Box<T>);

/// One value, or an array of values. It is written in the form in which it was read.
#[derive(Clone, Debug, PartialEq)]
pub enum OneOrMany<T> {
    /// The bare value.
    One(T),
    /// The array.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// Returns the values.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(value) => core::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

impl<T> From<Vec<T>> for OneOrMany<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Many(values)
    }
}

impl<'de, T: for<'a> Deserialize<'a>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(UNION, OneOrManyVisitor(PhantomData))
    }
}

struct OneOrManyVisitor<T>(PhantomData<T>);

impl<'de, T: for<'a> Deserialize<'a>> Visitor<'de> for OneOrManyVisitor<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value or a list")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, union: A) -> Result<OneOrMany<T>, A::Error> {
        let (text, value) = union.variant::<&'de str>()?;
        if text.starts_with('[') {
            value.newtype_variant().map(|List(values)| OneOrMany::Many(values))
        } else {
            value.newtype_variant().map(OneOrMany::One)
        }
    }

    /// Reads a value of any other deserializer than that of this crate.
    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<OneOrMany<T>, D::Error> {
        Json::deserialize(deserializer)?.decode().map_err(serde::de::Error::custom)
    }
}

impl<T: SerializeAt> SerializeAt for OneOrMany<T> {
    /// Before 2025-11-25 only the bare value is supported.
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(value) => value.serialize_at(revision, serializer),
            Self::Many(values) if rev::SINCE_2025_11_25.contains(revision) => {
                values.serialize_at(revision, serializer)
            }
            // MCP 2025-06-18 schema.json#SamplingMessage [SAMP-004]: content is one block.
            Self::Many(values) => match values.as_slice() {
                [value] => value.serialize_at(revision, serializer),
                _ => Err(S::Error::custom(NotExpressible::new(
                    "a message with other than one content block",
                    revision,
                ))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    #[test]
    fn whole_numbers_are_written_without_a_fraction() {
        for (number, text) in [(50.0, "50"), (0.5, "0.5"), (-3.0, "-3")] {
            assert_eq!(number.to_json_at(Revision::LATEST).unwrap().as_str(), text);
        }
        assert!(f64::NAN.to_json_at(Revision::LATEST).is_err());
        assert!(f64::INFINITY.to_json_at(Revision::LATEST).is_err());
    }

    #[test]
    fn a_single_block_is_written_without_an_array_at_older_revisions() {
        // Rule: [SAMP-004].
        let many = OneOrMany::Many(vec![String::from("a")]);
        assert_eq!(many.to_json_at(Revision::V2025_06_18).unwrap().as_str(), "\"a\"");
        assert_eq!(many.to_json_at(Revision::V2025_11_25).unwrap().as_str(), "[\"a\"]");
        let two = OneOrMany::Many(vec![String::from("a"), String::from("b")]);
        let error = two.to_json_at(Revision::V2025_03_26).unwrap_err().to_string();
        assert!(error.contains("2025-03-26"), "{error}");
    }

    #[test]
    fn only_a_root_type_of_object_makes_an_object_schema() {
        let json = |text| Json::from(RawJson::parse(text).unwrap());
        assert!(is_object_schema(&json(r#"{"type":"object"}"#)));
        assert!(!is_object_schema(&json(r#"{"type":["object","null"]}"#)));
        assert!(!is_object_schema(&json("true")));
        assert!(!is_object_schema(&json("{}")));
    }

    #[test]
    fn a_tag_is_a_single_string_or_absent() {
        let read = |text| tag(&RawJson::trusted(text), "type").map(|tag| tag.map(Cow::into_owned));
        assert_eq!(read(r#"{"a":1,"type":"t\n"}"#).unwrap().as_deref(), Some("t\n"));
        for text in ["{}", r#"{"a":"type"}"#, r#"{"type":null}"#] {
            assert_eq!(read(text).unwrap(), None, "{text}");
        }
        for text in ["[]", r#""type""#, r#"{"type":1}"#, r#"{"type":"a","type":"a"}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
