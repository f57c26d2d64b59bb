//! How messages are written at a revision, and the two macros that define them.
//!
//! Reading is lenient and knows no revision: unknown fields are ignored, absent and `null` optional
//! fields are the same. Writing is exact: a field, a word or a kind of content that the revision
//! does not have is left out, converted, or refused with [`NotExpressible`].

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error as _, Serialize, SerializeSeq, Serializer};

use super::revision::Revision;
use crate::jsonrpc::{Json, RawJson, RequestId};

/// A value that can be written at any revision of the protocol.
///
/// [`Wire::at`] ties it to one, which gives a [`Serialize`]; [`Wire::to_json_at`] gives the text.
pub trait Wire {
    /// Writes the value as `revision` spells it.
    ///
    /// # Errors
    ///
    /// The caller's fault: the value has something that the revision cannot say (the message is
    /// that of [`NotExpressible`]), or a number is not finite.
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error>;

    /// Whether a field with this value is left out of its object: `None`, and nothing else.
    fn is_absent(&self) -> bool {
        false
    }

    /// The value tied to a revision.
    fn at(&self, revision: Revision) -> At<'_, Self> {
        At(self, revision)
    }

    /// The JSON text of the value at `revision`.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::serialize_at`].
    fn to_json_at(&self, revision: Revision) -> Result<Json, serde_json::Error> {
        Json::from_serialize(&self.at(revision))
    }
}

/// A value and the revision it is to be written at.
pub struct At<'a, T: ?Sized>(pub &'a T, pub Revision);

impl<T: Wire + ?Sized> Serialize for At<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_at(self.1, serializer)
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for At<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("At").field(&self.0).field(&self.1).finish()
    }
}

/// The value has no spelling at the revision, and leaving the part out would change its meaning.
///
/// The caller's fault. As serialisers choose their own error type, it arrives there as their
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be expressed in protocol revision {revision}")]
pub struct NotExpressible {
    /// What cannot be said.
    pub what: &'static str,
    /// Where it cannot be said.
    pub revision: Revision,
}

impl NotExpressible {
    pub(crate) const fn new(what: &'static str, revision: Revision) -> Self {
        Self { what, revision }
    }
}

/// Sets of revisions by the names that the macro [`message`] takes.
pub(crate) mod rev {
    use super::super::revision::{Revision, Revisions};

    pub(crate) const ALL: Revisions = Revisions::ALL;
    pub(crate) const LEGACY: Revisions = Revisions::LEGACY;
    pub(crate) const MODERN: Revisions = Revisions::MODERN;
    pub(crate) const SINCE_2025_03_26: Revisions = Revisions::since(Revision::V2025_03_26);
    pub(crate) const SINCE_2025_06_18: Revisions = Revisions::since(Revision::V2025_06_18);
    pub(crate) const SINCE_2025_11_25: Revisions = Revisions::since(Revision::V2025_11_25);
    pub(crate) const ONLY_2025_11_25: Revisions = Revisions::only(Revision::V2025_11_25);
}

/// Defines a message: a struct with public fields, `Deserialize`, [`Wire`], `new` and setters.
///
/// Fields are written in the order given. `tag` members have one value and are ignored when read;
/// `required` fields are the parameters of `new`; `defaulted` ones are always written and have a
/// default when absent; `optional` ones are `Option`s. After `in` stands the set of revisions that
/// have the field (a name from [`rev`]); after `when` a function of the value and the revision that
/// may leave it out still; after `as` the exact parameter type of the setter, for numbers, whose
/// literals `Into` cannot resolve. `check` names a function that may refuse the whole value.
macro_rules! message {
    (
        $(#[$meta:meta])*
        pub struct $name:ident $(<$lt:lifetime>)? {
            $( check $check:expr; )?
            $( tag $tag:literal = $tag_value:literal in $tag_revs:ident; )*
            required { $(
                $(#[doc = $rdoc:expr])* $(#[serde($($rserde:tt)*)])*
                $rfield:ident : $rty:ty = $rwire:literal in $rrevs:ident;
            )* }
            defaulted { $(
                $(#[doc = $ddoc:expr])* $(#[serde($($dserde:tt)*)])*
                $dfield:ident : $dty:ty $(as $darg:ty)? = $dwire:literal in $drevs:ident;
            )* }
            optional { $(
                $(#[doc = $odoc:expr])* $(#[serde($($oserde:tt)*)])*
                $ofield:ident : $oty:ty $(as $oarg:ty)? = $owire:literal in $orevs:ident
                    $(, when $owhen:expr)? ;
            )* }
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        pub struct $name $(<$lt>)? {
            $( $(#[doc = $rdoc])* $(#[serde($($rserde)*)])* #[serde(rename = $rwire)]
               pub $rfield: $rty, )*
            $( $(#[doc = $ddoc])* $(#[serde($($dserde)*)])* #[serde(
                   rename = $dwire,
                   default,
                   deserialize_with = "crate::protocol::wire::or_default"
               )]
               pub $dfield: $dty, )*
            $( $(#[doc = $odoc])* $(#[serde($($oserde)*)])* #[serde(rename = $owire, default)]
               pub $ofield: Option<$oty>, )*
        }

        impl $(<$lt>)? $name $(<$lt>)? {
            /// The message with the fields that it must have, and nothing else.
            #[must_use]
            #[allow(clippy::new_without_default, reason = "a default is derived where it has use")]
            pub fn new($($rfield: impl Into<$rty>),*) -> Self {
                Self {
                    $( $rfield: $rfield.into(), )*
                    $( $dfield: Default::default(), )*
                    $( $ofield: None, )*
                }
            }

            $( $crate::protocol::wire::message! { @defaulted $name $dfield: $dty $(, $darg)? } )*
            $( $crate::protocol::wire::message! { @optional $name $ofield: $oty $(, $oarg)? } )*

            /// Writes the members into an object that others may add to.
            #[allow(
                unused_variables,
                clippy::redundant_closure_call,
                reason = "messages without members or conditions"
            )]
            pub(crate) fn write_fields<M: serde::ser::SerializeMap>(
                &self,
                revision: $crate::protocol::Revision,
                map: &mut M,
            ) -> Result<(), M::Error> {
                use $crate::protocol::wire::{Wire, rev};
                $( $check(self, revision).map_err(serde::ser::Error::custom)?; )?
                $( if rev::$tag_revs.contains(revision) {
                    map.serialize_entry($tag, $tag_value)?;
                } )*
                $( if rev::$rrevs.contains(revision) && !self.$rfield.is_absent() {
                    map.serialize_entry($rwire, &self.$rfield.at(revision))?;
                } )*
                $( if rev::$drevs.contains(revision) {
                    map.serialize_entry($dwire, &self.$dfield.at(revision))?;
                } )*
                $( if let Some(value) = &self.$ofield
                    && rev::$orevs.contains(revision)
                    $( && $owhen(value, revision) )?
                {
                    map.serialize_entry($owire, &value.at(revision))?;
                } )*
                Ok(())
            }
        }

        impl $(<$lt>)? $crate::protocol::wire::Wire for $name $(<$lt>)? {
            fn serialize_at<S: serde::Serializer>(
                &self,
                revision: $crate::protocol::Revision,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                self.write_fields(revision, &mut map)?;
                serde::ser::SerializeMap::end(map)
            }
        }
    };
    (@defaulted $name:ident $field:ident: $ty:ty) => {
        #[doc = concat!("Sets [`", stringify!($name), "::", stringify!($field), "`].")]
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$ty>) -> Self {
            self.$field = $field.into();
            self
        }
    };
    (@defaulted $name:ident $field:ident: $ty:ty, $arg:ty) => {
        #[doc = concat!("Sets [`", stringify!($name), "::", stringify!($field), "`].")]
        #[must_use]
        pub fn $field(mut self, $field: $arg) -> Self {
            self.$field = $field;
            self
        }
    };
    (@optional $name:ident $field:ident: $ty:ty) => {
        #[doc = concat!("Sets [`", stringify!($name), "::", stringify!($field), "`].")]
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$ty>) -> Self {
            self.$field = Some($field.into());
            self
        }
    };
    (@optional $name:ident $field:ident: $ty:ty, $arg:ty) => {
        #[doc = concat!("Sets [`", stringify!($name), "::", stringify!($field), "`].")]
        #[must_use]
        pub fn $field(mut self, $field: $arg) -> Self {
            self.$field = Some($field);
            self
        }
    };
}
pub(crate) use message;

/// Defines an enum of words that stays open: a word of a later revision is kept in `Unknown`.
macro_rules! word {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $text:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )+
            /// A word that this crate does not know, kept as it came and written back as it is.
            Unknown(alloc::string::String),
        }

        impl $name {
            /// The spelling on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )+
                    Self::Unknown(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $( $text => Self::$variant, )+
                    _ => Self::Unknown(text.into()),
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::protocol::wire::Text::deserialize(deserializer)
                    .map(|text| Self::from(&*text.0))
            }
        }

        impl $crate::protocol::wire::Wire for $name {
            fn serialize_at<S: serde::Serializer>(
                &self,
                _: $crate::protocol::Revision,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}
pub(crate) use word;

/// Defines a union that a member of the object tells apart. A kind that this crate does not know
/// is kept in `Unknown`, as is an object without the member. [`Wire`] is written by hand or by
/// [`forward_wire`].
macro_rules! tagged {
    (
        $(#[$meta:meta])*
        pub enum $name:ident by $tag:literal {
            $( $(#[$vmeta:meta])* $variant:ident($inner:ty) = $text:pat, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $( $(#[$vmeta])* $variant($inner), )+
            /// A kind that this crate does not know, kept as it came and written back as it is.
            Unknown($crate::jsonrpc::Json),
        }

        $( impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self::$variant(value)
            }
        } )+

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                struct Tag<'a> {
                    #[serde(
                        rename = $tag,
                        borrow,
                        default,
                        deserialize_with = "super::wire::optional_text"
                    )]
                    tag: Option<alloc::borrow::Cow<'a, str>>,
                }

                let json = $crate::jsonrpc::Json::deserialize(deserializer)?;
                let tag: Tag<'_> = json.decode().map_err(serde::de::Error::custom)?;
                match tag.tag.as_deref() {
                    $( $text => json.decode().map(Self::$variant), )+
                    _ => return Ok(Self::Unknown(json)),
                }
                .map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use tagged;

/// Writes a union as whichever variant it holds.
macro_rules! forward_wire {
    ($name:ident { $($variant:ident),+ $(,)? }) => {
        impl $crate::protocol::wire::Wire for $name {
            fn serialize_at<S: serde::Serializer>(
                &self,
                revision: $crate::protocol::Revision,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$variant(value) => value.serialize_at(revision, serializer), )+
                }
            }
        }
    };
}
pub(crate) use forward_wire;

/// A string that borrows where the source allows.
#[derive(serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Reads an optional string, borrowing where the source allows: `borrow` alone does not reach
/// through an `Option`.
pub(crate) fn optional_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'de, str>>, D::Error> {
    Option::<Text<'de>>::deserialize(deserializer).map(|text| text.map(|text| text.0))
}

/// Reads a field where `null` is the same as absent, which has a default.
pub(crate) fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads a field where `null` is a value and not the same as absent.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// Whether the value is a JSON object.
pub(crate) fn is_object(json: &Json) -> bool {
    json.as_str().trim_start().starts_with('{')
}

/// Whether the value is a JSON Schema that allows objects only, by its root `type`.
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
        impl Wire for $ty {
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

impl Wire for f64 {
    /// Whole numbers are written without a fraction, as peers that never knew one expect.
    fn serialize_at<S: Serializer>(&self, _: Revision, serializer: S) -> Result<S::Ok, S::Error> {
        // Up to here every whole number has an exact `f64`.
        const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;
        if !self.is_finite() {
            return Err(S::Error::custom("a number that is not finite has no JSON"));
        }
        let whole = *self as i64;
        if self.abs() <= WHOLE_MAX && whole as Self == *self {
            serializer.serialize_i64(whole)
        } else {
            serializer.serialize_f64(*self)
        }
    }
}

impl<T: Wire> Wire for Option<T> {
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

impl<T: Wire> Wire for [T] {
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

impl<T: Wire> Wire for Vec<T> {
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
        impl<T: Wire + ?Sized> Wire for $ty {
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

/// One value, or an array of them: the form that came is the form that is written back.
#[derive(Clone, Debug, PartialEq)]
pub enum OneOrMany<T> {
    /// The bare value.
    One(T),
    /// The array.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// The values.
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
        let json = Json::deserialize(deserializer)?;
        if json.as_str().trim_start().starts_with('[') {
            json.decode().map(Self::Many)
        } else {
            json.decode().map(Self::One)
        }
        .map_err(serde::de::Error::custom)
    }
}

impl<T: Wire> Wire for OneOrMany<T> {
    /// Before 2025-11-25 there is only the bare value.
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
    fn one_block_in_an_array_becomes_a_bare_block_where_arrays_are_unknown() {
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
}
