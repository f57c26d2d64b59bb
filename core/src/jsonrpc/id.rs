use core::fmt;

use arrayvec::ArrayString;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::ser::{Serialize, Serializer};

/// The longest string id that is accepted, in bytes. A UUID has 36; ids are kept inline in the
/// table of requests in flight, so the bound is memory per request.
pub const ID_LENGTH_MAX: usize = 64;

/// The id of a request: a string or an integer. `"1"` and `1` are different ids.
// MCP 2026-07-28 basic/index#requests [RPC-002] [RPC-006]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// An integer id.
    Number(i64),
    /// A string id of at most [`ID_LENGTH_MAX`] bytes.
    Text(ArrayString<ID_LENGTH_MAX>),
}

/// A string is too long to be an id: see [`ID_LENGTH_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a string id has at most {ID_LENGTH_MAX} bytes")]
pub struct IdTooLong;

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl TryFrom<&str> for RequestId {
    type Error = IdTooLong;

    fn try_from(text: &str) -> Result<Self, IdTooLong> {
        ArrayString::from(text).map(Self::Text).map_err(|_| IdTooLong)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;

        impl Visitor<'_> for IdVisitor {
            type Value = RequestId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer or a string")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<RequestId, E> {
                Ok(RequestId::Number(number))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<RequestId, E> {
                i64::try_from(number).map(RequestId::Number).map_err(E::custom)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RequestId, E> {
                RequestId::try_from(text).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(IdVisitor).map_err(D::Error::custom)
    }
}
