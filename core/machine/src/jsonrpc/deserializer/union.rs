//! Values whose type depends on their content.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error as _, VariantAccess, Visitor};

use super::{Deserializer, Error, Input};
use crate::envelope::scan::Scanner;

/// The name by which this deserializer recognizes a union: a type that first looks at the whole
/// value, and then reads it as one of several types. The value is passed as an enum: its variant
/// is the text of the value, and the content of the variant is the value. Others pass the value.
///
/// A type that decoded the text instead would read it outside of this deserializer, which then
/// could not leave malformed elements out of the lists in it.
pub(crate) const UNION: &str = "$mcp_sansio::Union";

impl<'de> Deserializer<'_, 'de> {
    pub(super) fn union<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        self.input.peek();
        let start = self.input.scanner.clone();
        let text = self.again().skip();
        visitor.visit_enum(Union { text, start, input: self.input, depth: self.depth })
    }
}

struct Union<'s, 'de> {
    text: &'de str,
    /// The position of the value.
    start: Scanner<'de>,
    /// The input after the value.
    input: &'s mut Input<'de>,
    depth: u8,
}

impl<'de> EnumAccess<'de> for Union<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let text = BorrowedStrDeserializer::<Error>::new(self.text);
        Ok((seed.deserialize(text)?, self))
    }
}

impl<'de> VariantAccess<'de> for Union<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        self.input.scanner = self.start;
        seed.deserialize(Deserializer { input: self.input, depth: self.depth })
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("a union is no tuple"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(Error::custom("a union is no struct"))
    }
}
