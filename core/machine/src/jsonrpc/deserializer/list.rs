//! Lists and hints whose malformed parts are left out by a lossy reading.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{SeqAccessDeserializer, UnitDeserializer};
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Deserializer, Elements, Error};
use crate::jsonrpc::omission::Omitted;

/// The name by which this deserializer recognizes such a list. Others read it as any list.
pub(super) const LIST: &str = "$mcp_sansio::List";

/// The same for a hint.
pub(super) const HINT: &str = "$mcp_sansio::Hint";

/// Reads a list of which [`RawJson::decode_lossy`](crate::jsonrpc::RawJson::decode_lossy) leaves
/// out the malformed elements: for `#[serde(default, deserialize_with = "..")]`. `null` is an empty
/// list: it has no other meaning there, and is what some languages write for one.
///
/// # Errors
///
/// The peer's fault: the value is not a list, or one of its elements is malformed and the reading is
/// not lossy.
pub fn list<'de, T: Deserialize<'de>, D: de::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    optional_list(deserializer).map(Option::unwrap_or_default)
}

/// Like [`list`], for an optional member.
pub(crate) fn optional_list<'de, T: Deserialize<'de>, D: de::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Option::<List<T>>::deserialize(deserializer).map(|list| list.map(|List(elements)| elements))
}

/// Reads an optional member that only helps to display or to use something: a lossy reading leaves
/// it out if it is malformed. Not for a member that names or limits something, or is its content.
pub(crate) fn hint<'de, T: Deserialize<'de>, D: de::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::<Hint<T>>::deserialize(deserializer).map(|hint| hint.and_then(|Hint(value)| value))
}

/// Like [`hint`], for a list of which malformed elements are left out alone.
pub(crate) fn list_of_hints<'de, T: Deserialize<'de>, D: de::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    hint(deserializer).map(|list| list.map(|List(elements)| elements))
}

/// A list of which a lossy reading leaves out the malformed elements.
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(LIST, ListVisitor(PhantomData)).map(Self)
    }
}

/// A hint, or `None` if it was left out.
struct Hint<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Hint<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(HINT, HintVisitor(PhantomData)).map(Self)
    }
}

struct HintVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for HintVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a hint")
    }

    fn visit_newtype_struct<D: de::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        T::deserialize(deserializer).map(Some)
    }

    /// Reads a hint that the access skips and notes if it is malformed.
    #[cold]
    fn visit_seq<A: SeqAccess<'de>>(self, mut hint: A) -> Result<Option<T>, A::Error> {
        Ok(hint.next_element().unwrap_or_default())
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(elements))
    }

    /// Reads a list of any other deserializer.
    fn visit_newtype_struct<D: de::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        Vec::deserialize(deserializer)
    }

    /// Reads a list without its malformed elements, which the access skips and notes.
    #[cold]
    fn visit_map<A: MapAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let mut kept = Vec::new();
        while elements.next_key::<IgnoredAny>()?.is_some() {
            kept.extend(elements.next_value().ok());
        }
        Ok(kept)
    }
}

impl<'de> Deserializer<'_, 'de> {
    pub(super) fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.input.peek() {
            Some(b'[') if self.input.omitted.is_some() => self.lossy_list(visitor),
            Some(b'[') => self.sequence(visitor),
            _ => Err(self.unexpected(&visitor)),
        }
    }

    #[cold]
    fn lossy_list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Elements(mut within) = self.enter()?;
        let value = visitor.visit_map(LossyElements { within: within.again() })?;
        within.leave(b']')?;
        Ok(value)
    }

    pub(super) fn hint<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.input.omitted {
            Some(_) => visitor.visit_seq(LossyHint(Some(self))),
            None => visitor.visit_newtype_struct(self),
        }
    }

    /// Reads a value that is left out if it is malformed. After an error, the next value can be
    /// read.
    #[cold]
    fn lossy<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        let Deserializer { input, depth } = self;
        input.peek();
        let (value, noted) = (input.scanner.clone(), input.omitted.map_or(0, Omitted::count));
        seed.deserialize(Deserializer { input, depth })
            .inspect_err(|error| input.leave_out(value, noted, error))
    }
}

/// The remaining elements of a list, each the value of a key without content. After an error in a
/// value, the next element can be read.
struct LossyElements<'s, 'de> {
    within: Deserializer<'s, 'de>,
}

impl<'de> MapAccess<'de> for LossyElements<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if self.within.has_next(b']') {
            seed.deserialize(UnitDeserializer::new()).map(Some)
        } else {
            Ok(None)
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        self.within.again().lossy(seed)
    }
}

/// A hint, as a sequence with one value.
struct LossyHint<'s, 'de>(Option<Deserializer<'s, 'de>>);

impl<'de> SeqAccess<'de> for LossyHint<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.0.take().map(|value| value.lossy(seed)).transpose()
    }
}
