use alloc::boxed::Box;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::Deref;

use arrayvec::ArrayString;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::ser::{Serialize, Serializer};

use super::text::resolved;
use crate::envelope::IdRef;
use crate::envelope::{Sink, WriteId, write_integer, write_string};

/// Maximum length of a string id that is stored inline, in bytes: enough for a UUID of 36 bytes
/// with a prefix. Longer ids are rare and are stored on the heap.
pub(crate) const INLINE_LENGTH_MAX: usize = 64;

/// The id of a request: a string or an integer. `"1"` and `1` are different ids.
// MCP 2026-07-28 basic/index#requests [RPC-002] [RPC-006]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// An integer id.
    Number(i64),
    /// A string id.
    Text(IdText),
}

/// A string id. Up to 64 bytes are stored without allocation.
///
/// [`ParseLimits::id_length`](super::ParseLimits::id_length) limits the length of a received id.
#[derive(Clone)]
pub struct IdText(Place);

/// The storage of the text: inline if it fits, so that equal texts have equal storage.
#[derive(Clone)]
enum Place {
    Inline(ArrayString<INLINE_LENGTH_MAX>),
    Heap(Box<str>),
}

impl IdText {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Place::Inline(text) => text,
            Place::Heap(text) => text,
        }
    }
}

impl From<&str> for IdText {
    fn from(text: &str) -> Self {
        Self(match ArrayString::from(text) {
            Ok(inline) => Place::Inline(inline),
            Err(_) => Place::Heap(text.into()),
        })
    }
}

impl Deref for IdText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for IdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for IdText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for IdText {}

impl PartialOrd for IdText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for IdText {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for IdText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl RequestId {
    /// Returns the number of a request that this side has sent: its requests have numbers, which some
    /// peers return as a string. `None` if it cannot be one.
    pub(crate) fn own_number(&self) -> Option<i64> {
        let text = match self {
            Self::Number(number) => return Some(*number),
            Self::Text(text) => text.as_str(),
        };
        // This side counts up from 1. Parsing any `i64` would need more code.
        if text.len() > 18 || text.as_bytes().first() == Some(&b'0') {
            return None;
        }
        let mut number = 0;
        for byte in text.bytes() {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number * 10 + i64::from(digit);
        }
        Some(number)
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<IdRef<'_>> for RequestId {
    #[inline]
    fn from(id: IdRef<'_>) -> Self {
        match id {
            IdRef::Number(number) => Self::Number(number),
            IdRef::Text(text) => Self::Text((&*resolved(text)).into()),
        }
    }
}

impl WriteId for RequestId {
    fn write_id<S: Sink + ?Sized>(&self, out: &mut S) {
        match self {
            Self::Number(number) => write_integer(out, *number),
            Self::Text(text) => write_string(out, text),
        }
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
                Ok(RequestId::from(text))
            }
        }

        deserializer.deserialize_any(IdVisitor).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_ordinary_length_is_stored_inline() {
        assert!(size_of::<RequestId>() <= INLINE_LENGTH_MAX + size_of::<u64>());
        for length in [0, 36, INLINE_LENGTH_MAX, INLINE_LENGTH_MAX + 1, 5000] {
            let text = "x".repeat(length);
            let id = IdText::from(text.as_str());
            assert_eq!(matches!(id.0, Place::Inline(_)), length <= INLINE_LENGTH_MAX);
            assert_eq!((id.as_str(), &id.clone()), (text.as_str(), &id));
        }
    }

    #[test]
    fn ids_are_ordered_as_their_texts_wherever_they_are_stored() {
        let [short, long] = [1, 100].map(|length| IdText::from(&*"b".repeat(length)));
        assert!(short < long && IdText::from("a") < short && long < IdText::from("c"));
        assert_ne!(short, long);
        assert!(RequestId::Number(i64::MAX) < RequestId::from(""));
    }
}
