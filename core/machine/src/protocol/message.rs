//! Macros for messages, open sets of words and unions.

/// Defines a message: a struct with public fields, `Deserialize`,
/// [`SerializeAt`](super::wire::SerializeAt), `new` and setters.
///
/// Fields are written in the given order. `tag` members have a fixed value and are ignored when
/// read; `required` fields are the parameters of `new`; `defaulted` fields are always written and
/// have a default if absent; `optional` fields are `Option`s. `in` is followed by the set of
/// revisions that have the field (a name from [`rev`](super::wire::rev)); `when` by a function of
/// the value and the revision that may omit the field; `as` by the exact parameter type of the
/// setter, for numbers, whose literals `Into` cannot resolve. The field in `last` is optional and no
/// part of `write_fields`, so that a caller can omit it. `check` names a function that may refuse the
/// complete value; `wire` contains further methods of [`SerializeAt`](super::wire::SerializeAt).
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
            $( last {
                $(#[doc = $ldoc:expr])*
                $lfield:ident : $lty:ty = $lwire:literal in $lrevs:ident;
            } )?
            $( wire { $($wire:tt)* } )?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(expecting = "an object")]
        #[non_exhaustive]
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
            $( $(#[doc = $ldoc])* #[serde(rename = $lwire, default)]
               pub $lfield: Option<$lty>, )?
        }

        impl $(<$lt>)? $name $(<$lt>)? {
            /// Creates the message with its required fields.
            #[must_use]
            #[allow(clippy::new_without_default, reason = "a default is derived where it is useful")]
            pub fn new($($rfield: impl Into<$rty>),*) -> Self {
                Self {
                    $( $rfield: $rfield.into(), )*
                    $( $dfield: Default::default(), )*
                    $( $ofield: None, )*
                    $( $lfield: None, )?
                }
            }

            $( $crate::protocol::message::message! { @defaulted $name $dfield: $dty $(, $darg)? } )*
            $( $crate::protocol::message::message! { @optional $name $ofield: $oty $(, $oarg)? } )*
            $( $crate::protocol::message::message! { @optional $name $lfield: $lty } )?

            /// Writes the members into an object to which the caller may add more.
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
                use $crate::protocol::wire::{SerializeAt, rev};
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

        impl $(<$lt>)? $crate::protocol::wire::SerializeAt for $name $(<$lt>)? {
            fn serialize_at<S: serde::Serializer>(
                &self,
                revision: $crate::protocol::Revision,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                self.write_fields(revision, &mut map)?;
                $( if let Some(value) = &self.$lfield
                    && $crate::protocol::wire::rev::$lrevs.contains(revision)
                {
                    serde::ser::SerializeMap::serialize_entry(&mut map, $lwire, &value.at(revision))?;
                } )?
                serde::ser::SerializeMap::end(map)
            }

            $( $($wire)* )?
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

/// Defines an open enum of words: a word of a later revision is kept in `Unknown`. `by` is followed
/// by the function that reads it, if that is not one word.
macro_rules! word {
    (
        $(#[$meta:meta])*
        pub enum $name:ident $(by $read:path)? {
            $( $(#[$vmeta:meta])* $variant:ident = $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )+
            /// An unknown word, kept and written back unchanged.
            Unknown(alloc::string::String),
        }

        impl $name {
            /// Returns the spelling on the wire.
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
                $crate::protocol::message::word! { @read deserializer $($read)? }
            }
        }

        impl $crate::protocol::wire::SerializeAt for $name {
            fn serialize_at<S: serde::Serializer>(
                &self,
                _: $crate::protocol::Revision,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
    (@read $deserializer:ident) => {
        $crate::protocol::wire::Text::deserialize($deserializer).map(|text| Self::from(&*text.0))
    };
    (@read $deserializer:ident $read:path) => {
        $read($deserializer)
    };
}
pub(crate) use word;

/// Defines a union that is distinguished by a member of the object. An unknown kind, or an object
/// without the member, is kept in `Unknown`. [`SerializeAt`](super::wire::SerializeAt) is
/// implemented manually or by [`forward_wire`].
macro_rules! tagged {
    (
        $(#[$meta:meta])*
        pub enum $name:ident by $tag:literal $(, before that $shortcut:path)? {
            $( $(#[$vmeta:meta])* $variant:ident($inner:ty) = $text:pat, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vmeta])* $variant($inner), )+
            /// An unknown kind, kept and written back unchanged.
            Unknown($crate::jsonrpc::Json),
        }

        $( impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self::$variant(value)
            }
        } )+

        const _: () = {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_newtype_struct($crate::jsonrpc::UNION, UnionVisitor)
            }
        }

        struct UnionVisitor;

        impl<'de> serde::de::Visitor<'de> for UnionVisitor {
            type Value = $name;

            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("an object")
            }

            fn visit_enum<A: serde::de::EnumAccess<'de>>(
                self,
                union: A,
            ) -> Result<$name, A::Error> {
                let (text, value) = union.variant::<&'de str>()?;
                let json = $crate::jsonrpc::RawJson::trusted(text);
                $( if let Some(value) = $shortcut(&json) {
                    return Ok(value);
                } )?
                let tag = $crate::protocol::wire::tag(&json, $tag);
                match tag.map_err(serde::de::Error::custom)?.as_deref() {
                    $( $text => {
                        serde::de::VariantAccess::newtype_variant(value).map($name::$variant)
                    } )+
                    _ => Ok($name::Unknown(json.into())),
                }
            }

            /// Reads a value of any other deserializer than that of this crate.
            fn visit_newtype_struct<D: serde::Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<$name, D::Error> {
                let json = <$crate::jsonrpc::RawJson<'_> as serde::Deserialize>::deserialize(
                    deserializer,
                )?;
                json.decode().map_err(serde::de::Error::custom)
            }
        }
        };
    };
}
pub(crate) use tagged;

/// Implements `SerializeAt` for a union by forwarding to its variants.
macro_rules! forward_wire {
    ($name:ident { $($variant:ident),+ $(,)? }) => {
        impl $crate::protocol::wire::SerializeAt for $name {
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
