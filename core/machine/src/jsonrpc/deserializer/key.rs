//! Deserializer for map keys, which are strings in JSON even if a type expects a number.

use alloc::borrow::Cow;

use serde::de::value::CowStrDeserializer;
use serde::de::{self, Error as _, Visitor};

use super::{Error, visit_number};
use crate::envelope::scan::Scanner;

pub(super) struct Deserializer<'de>(pub(super) Cow<'de, str>);

impl<'de> Deserializer<'de> {
    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    /// Returns the key if it is written like a JSON number, without escapes.
    fn as_number(&self) -> Option<&'de str> {
        let Cow::Borrowed(text) = self.0 else { return None };
        let mut scanner = Scanner::new(text);
        let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
            && scanner.value(0).is_ok()
            && scanner.at() == text.len();
        is_number.then_some(text)
    }

    fn number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.as_number() {
            Some(number) => visit_number(number, visitor),
            None => self.text(visitor),
        }
    }
}

macro_rules! numbers {
    ($($method:ident),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.number(visitor)
        }
    )*};
}

macro_rules! long_integers {
    ($($method:ident: $visit:ident),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.as_number().and_then(|number| number.parse().ok()) {
                Some(number) => visitor.$visit(number),
                None => Err(Error::custom("not an integer of 128 bits")),
            }
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Deserializer<'de> {
    type Error = Error;

    numbers!(
        deserialize_i8,
        deserialize_i16,
        deserialize_i32,
        deserialize_i64,
        deserialize_u8,
        deserialize_u16,
        deserialize_u32,
        deserialize_u64,
        deserialize_f32,
        deserialize_f64
    );

    long_integers!(deserialize_i128: visit_i128, deserialize_u128: visit_u128);

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.text(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Cow::Borrowed("true") => visitor.visit_bool(true),
            Cow::Borrowed("false") => visitor.visit_bool(false),
            _ => self.text(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(CowStrDeserializer::new(self.0))
    }

    serde::forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}
