//! Lists of which a lossy reading leaves out the malformed elements.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{SeqAccessDeserializer, UnitDeserializer};
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Deserializer, Elements, Error};

/// The name by which this deserializer recognizes such a list. Others read it as any list.
pub(super) const LIST: &str = "$mcp_sansio::List";

/// Reads a list of which [`RawJson::decode_lossy`](crate::jsonrpc::RawJson::decode_lossy) leaves
/// out the malformed elements.
pub(crate) fn list<'de, T: Deserialize<'de>, D: de::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_newtype_struct(LIST, ListVisitor(PhantomData))
}

/// Like [`list`], for an optional member.
pub(crate) fn optional_list<'de, T: Deserialize<'de>, D: de::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Option::<List<T>>::deserialize(deserializer).map(|list| list.map(|List(elements)| elements))
}

/// Like [`list`], where `null` is an empty list.
pub(crate) fn list_or_default<'de, T: Deserialize<'de>, D: de::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    optional_list(deserializer).map(Option::unwrap_or_default)
}

struct List<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        list(deserializer).map(Self)
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
        let element = self.within.input.scanner.clone();
        let count = self.within.input.omitted.map_or(0, |omitted| omitted.count());
        seed.deserialize(self.within.again()).inspect_err(|error| {
            let start = element.at();
            self.within.input.scanner = element;
            self.within.again().skip();
            if let Some(omitted) = self.within.input.omitted {
                // What was left out of this element is left out with it.
                omitted.forget_after(count);
                omitted.note(start, error);
            }
        })
    }
}
