//! A serde deserializer for text that is known to be valid JSON.
//!
//! The scanner has already validated each received message, so this deserializer only checks for
//! the shape that a type expects. `serde_json` would validate the text again, which takes several
//! times as much code in a device image. Both accept the same input; the errors here contain no
//! line and column, because a message is one line.

use alloc::borrow::Cow;
use core::iter;
use core::ops::{Deref, DerefMut};

use serde::de::value::{BorrowedStrDeserializer, CowStrDeserializer, MapDeserializer};
use serde::de::{
    self, Deserialize, DeserializeSeed, EnumAccess, Error as _, Expected, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde_json::Number;

use super::json_error::JsonError as Error;
use super::omission::Omitted;
use super::serializer::RAW_VALUE;
use super::text::unescape;
use crate::envelope::Written;
use crate::envelope::integer::Integer;
use crate::envelope::scan::Scanner;

/// Maximum nesting of arrays and objects, the same as in `serde_json`: types may be recursive, and
/// each level uses stack.
const DEPTH_MAX: u8 = 127;

/// Deserializes `text`, which must be one JSON value. Any other text gives an unspecified value or
/// an error.
pub(super) fn deserialize<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Error> {
    let mut input = Input::new(text);
    T::deserialize(Deserializer { input: &mut input, depth: DEPTH_MAX })
        .map_err(|error| error.located(text, input.element))
}

/// Like [`deserialize`], but leaves out malformed elements of lists and malformed hints, and notes
/// them in `omitted`.
#[cold]
pub(super) fn deserialize_lossy<'de, T: Deserialize<'de>>(
    text: &'de str,
    omitted: &'de Omitted,
) -> Result<T, Error> {
    let mut input = Input { omitted: Some(omitted), ..Input::new(text) };
    T::deserialize(Deserializer { input: &mut input, depth: DEPTH_MAX })
        .map_err(|error| error.located(text, input.element))
}

/// The text that is read.
struct Input<'de> {
    scanner: Scanner<'de>,
    /// The offset of the last element, or of the end of the last container. After an error, the
    /// place where it occurred.
    element: usize,
    /// Where to note what is left out; `None` if the first malformed part is an error.
    omitted: Option<&'de Omitted>,
}

impl<'de> Input<'de> {
    const fn new(text: &'de str) -> Self {
        Self { scanner: Scanner::new(text), element: 0, omitted: None }
    }

    /// Skips a value that could not be read, whose first byte is the next one of `value`, and notes
    /// it in place of what was left out of it, which is all after the first `noted`.
    #[cold]
    fn leave_out(&mut self, value: Scanner<'de>, noted: usize, reason: &Error) {
        let start = value.at();
        let element = self.element.saturating_sub(start);
        self.scanner = value;
        self.trusted_value();
        if let Some(omitted) = self.omitted {
            omitted.forget_after(noted);
            omitted.note(start, self.since(start), element, reason);
        }
    }
}

impl<'de> Deref for Input<'de> {
    type Target = Scanner<'de>;

    #[inline]
    fn deref(&self) -> &Scanner<'de> {
        &self.scanner
    }
}

impl DerefMut for Input<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.scanner
    }
}

/// A deserializer at the first byte of a value.
struct Deserializer<'s, 'de> {
    input: &'s mut Input<'de>,
    depth: u8,
}

impl<'de> Deserializer<'_, 'de> {
    /// Skips the value and returns its text.
    fn skip(self) -> &'de str {
        self.input.peek();
        let start = self.input.at();
        self.input.trusted_value();
        self.input.since(start)
    }

    fn string(self) -> Result<Cow<'de, str>, Error> {
        self.input.string().and_then(Written::resolve).ok_or_else(|| Error::custom("not a string"))
    }

    /// Returns an error: the value differs from `expected`.
    #[cold]
    fn unexpected(self, expected: &dyn Expected) -> Error {
        unexpected(self.skip(), expected)
    }

    fn integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let text = self.skip();
        match Integer::read(text).or_else(|| Integer::read_any_spelling(text)) {
            Some(integer) => integer.visit(visitor),
            None => Err(unexpected(text, &visitor)),
        }
    }

    fn float<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if !matches!(self.input.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(self.unexpected(&visitor));
        }
        visit_number(self.skip(), visitor)
    }

    /// Reads a number for a type that takes any kind. One with a fraction of zero is an integer,
    /// because serde buffers values for flattened and untagged types, whose integers do not take
    /// floats.
    fn number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if !matches!(self.input.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(self.unexpected(&visitor));
        }
        let text = self.skip();
        match Integer::read(text).or_else(|| unrounded(text)) {
            Some(integer) => integer.visit(visitor),
            None => visitor.visit_f64(float(text)?),
        }
    }

    /// Enters an array or an object, whose first byte is next.
    fn enter(self) -> Result<Elements<Self>, Error> {
        let depth = self.depth.checked_sub(1);
        let depth = depth.ok_or_else(|| Error::custom("recursion limit exceeded"))?;
        self.input.bump();
        Ok(Elements(Deserializer { input: self.input, depth }))
    }

    fn sequence<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Elements(mut within) = self.enter()?;
        let value = visitor.visit_seq(Elements(within.again()))?;
        within.leave(b']')?;
        Ok(value)
    }

    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Elements(mut within) = self.enter()?;
        let value = visitor.visit_map(Elements(within.again()))?;
        within.leave(b'}')?;
        Ok(value)
    }

    /// Reads an empty array as an empty object, for languages with one type for lists and maps.
    fn empty_object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Elements(within) = self.enter()?;
        let empty = Deserializer { input: &mut Input::new(""), depth: within.depth };
        let value = visitor.visit_map(Elements(empty))?;
        within.leave(b']')?;
        Ok(value)
    }

    const fn again(&mut self) -> Deserializer<'_, 'de> {
        Deserializer { input: self.input, depth: self.depth }
    }

    /// Returns whether the container has another element before its `end`.
    fn has_next(&mut self, end: u8) -> bool {
        self.input.eat(b',');
        let next = self.input.peek();
        self.input.element = self.input.at();
        next.is_some_and(|byte| byte != end)
    }

    fn leave(self, end: u8) -> Result<(), Error> {
        if self.input.eat(end) { Ok(()) } else { Err(Error::custom("more than expected")) }
    }
}

/// Returns an error: the value in `text` differs from `expected`.
#[cold]
fn unexpected(text: &str, expected: &dyn Expected) -> Error {
    let content = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let content = content.and_then(unescape).unwrap_or_default();
    let found = match text.as_bytes().first() {
        Some(b'{') => Unexpected::Map,
        Some(b'[') => Unexpected::Seq,
        Some(b'"') => Unexpected::Str(&content),
        Some(b'n') => Unexpected::Unit,
        Some(b't') => Unexpected::Bool(true),
        Some(b'f') => Unexpected::Bool(false),
        _ => match Integer::read(text) {
            Some(Integer::Positive(number)) => Unexpected::Unsigned(number),
            Some(Integer::Negative(number)) => Unexpected::Signed(number),
            None => Unexpected::Other("number"),
        },
    };
    Error::invalid_type(found, expected)
}

impl Integer {
    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Positive(number) => visitor.visit_u64(number),
            Self::Negative(number) => visitor.visit_i64(number),
        }
    }

    fn widen(self) -> i128 {
        match self {
            Self::Positive(number) => number.into(),
            Self::Negative(number) => number.into(),
        }
    }
}

/// Passes a number of any kind to the visitor.
fn visit_number<'de, V: Visitor<'de>>(text: &str, visitor: V) -> Result<V::Value, Error> {
    match Integer::read(text) {
        Some(integer) => integer.visit(visitor),
        None => visitor.visit_f64(float(text)?),
    }
}

/// Reads an integer in an unusual spelling, except for a negative zero, which only a float can be.
#[cold]
fn unrounded(text: &str) -> Option<Integer> {
    let integer = Integer::read_any_spelling(text)?;
    (integer != Integer::Positive(0) || !text.starts_with('-')).then_some(integer)
}

/// Parses a number with a fraction or an exponent, or one that is too large for an integer.
// As a `Number`, not as an `f64`: the latter can fail with an error that contains any value, and
// formatting that takes ten kilobytes of a small program.
fn float(text: &str) -> Result<f64, Error> {
    text.parse().ok().and_then(|number: Number| number.as_f64()).ok_or_else(out_of_range)
}

#[cold]
fn out_of_range() -> Error {
    Error::custom("number out of range")
}

macro_rules! integers {
    ($($method:ident),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.integer(visitor)
        }
    )*};
}

macro_rules! long_integers {
    ($($method:ident: $visit:ident($ty:ty)),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let text = self.skip();
            let other = || Integer::read_any_spelling(text)?.widen().try_into().ok();
            match text.parse::<$ty>().ok().or_else(other) {
                Some(number) => visitor.$visit(number),
                None => Err(Error::custom("not an integer of 128 bits")),
            }
        }
    )*};
}

macro_rules! alike {
    ($($method:ident($($ignored:ty),*) => $other:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(
            self,
            $(_: $ignored,)*
            visitor: V,
        ) -> Result<V::Value, Error> {
            self.$other(visitor)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Deserializer<'_, 'de> {
    type Error = Error;

    integers!(
        deserialize_i8,
        deserialize_i16,
        deserialize_i32,
        deserialize_i64,
        deserialize_u8,
        deserialize_u16,
        deserialize_u32,
        deserialize_u64
    );

    long_integers!(deserialize_i128: visit_i128(i128), deserialize_u128: visit_u128(u128));

    alike! {
        deserialize_f64() => float;
        deserialize_char() => deserialize_str;
        deserialize_string() => deserialize_str;
        deserialize_identifier() => deserialize_str;
        deserialize_byte_buf() => deserialize_bytes;
        deserialize_unit_struct(&'static str) => deserialize_unit;
        deserialize_tuple(usize) => deserialize_seq;
        deserialize_tuple_struct(&'static str, usize) => deserialize_seq;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.input.peek() {
            Some(b'{') => self.object(visitor),
            Some(b'[') => self.sequence(visitor),
            Some(b'"') => self.deserialize_str(visitor),
            Some(b'n') => self.deserialize_unit(visitor),
            Some(b't' | b'f') => self.deserialize_bool(visitor),
            _ => self.number(visitor),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if !matches!(self.input.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(self.unexpected(&visitor));
        }
        // Whether a number too large for the type is refused depends on a feature of `serde_json`.
        let text = self.skip();
        match Integer::read(text) {
            Some(integer) => integer.visit(visitor),
            None => {
                let number = serde_json::from_str::<f32>(text).map_err(|_| out_of_range())?;
                visitor.visit_f64(number.into())
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.input.peek() {
            Some(first @ (b't' | b'f')) => {
                self.skip();
                visitor.visit_bool(first == b't')
            }
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.input.peek() != Some(b'"') {
            return Err(self.unexpected(&visitor));
        }
        match self.string()? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.input.peek() {
            Some(b'[') => self.sequence(visitor),
            Some(b'"') => match self.string()? {
                Cow::Borrowed(text) => visitor.visit_borrowed_bytes(text.as_bytes()),
                Cow::Owned(text) => visitor.visit_byte_buf(text.into_bytes()),
            },
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.input.peek() == Some(b'n') {
            self.skip();
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.input.peek() != Some(b'n') {
            return Err(self.unexpected(&visitor));
        }
        self.skip();
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == RAW_VALUE {
            let text = BorrowedStrDeserializer::new(self.skip());
            return visitor.visit_map(MapDeserializer::new(iter::once((RAW_VALUE, text))));
        }
        if name == UNION {
            return self.union(visitor);
        }
        if name == LIST {
            return self.list(visitor);
        }
        if name == HINT {
            return self.hint(visitor);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.input.peek() {
            Some(b'[') => self.sequence(visitor),
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.input.peek() {
            Some(b'{') => self.object(visitor),
            Some(b'[') if self.input.is_empty_array() => self.empty_object(visitor),
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.input.peek() {
            Some(b'{') => self.object(visitor),
            Some(b'[') if self.input.is_empty_array() => self.empty_object(visitor),
            Some(b'[') => self.sequence(visitor),
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.input.peek() {
            Some(b'"') => visitor.visit_enum(CowStrDeserializer::new(self.string()?)),
            Some(b'{') => {
                let Elements(mut within) = self.enter()?;
                let value = visitor.visit_enum(within.again())?;
                within.leave(b'}')?;
                Ok(value)
            }
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.skip();
        visitor.visit_unit()
    }
}

/// The remaining elements of a container.
struct Elements<D>(D);

impl<'de> SeqAccess<'de> for Elements<Deserializer<'_, 'de>> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.0.has_next(b']') { seed.deserialize(self.0.again()).map(Some) } else { Ok(None) }
    }
}

impl<'de> MapAccess<'de> for Elements<Deserializer<'_, 'de>> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if self.0.has_next(b'}') {
            seed.deserialize(key::Deserializer(self.0.key()?)).map(Some)
        } else {
            Ok(None)
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.0.again())
    }
}

impl<'de> Deserializer<'_, 'de> {
    /// Reads a key and its colon.
    fn key(&mut self) -> Result<Cow<'de, str>, Error> {
        self.input.key().and_then(Written::resolve).ok_or_else(|| Error::custom("not a key"))
    }
}

/// An enum variant with content: the only member of an object.
impl<'de> EnumAccess<'de> for Deserializer<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(mut self, seed: V) -> Result<(V::Value, Self), Error> {
        let name = self.key()?;
        Ok((seed.deserialize(CowStrDeserializer::<Error>::new(name))?, self))
    }
}

impl<'de> VariantAccess<'de> for Deserializer<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Deserialize::deserialize(self)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        de::Deserializer::deserialize_seq(self, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        de::Deserializer::deserialize_struct(self, "", fields, visitor)
    }
}

mod key;
mod list;
mod union;

pub use list::list;
use list::{HINT, LIST};
pub(crate) use list::{List, hint, list_of_hints, optional_list};
pub(crate) use union::UNION;

#[cfg(test)]
mod tests;
