//! A serde serializer that appends compact JSON to a buffer.
//!
//! `serde_json` exposes no such writer without `std`, and its `to_vec` would cost an allocation and
//! a copy per message. The output equals that of `serde_json`.

use alloc::string::String;
use core::fmt::{self, Write as _};

use serde::ser::{self, Error as _, Serialize};

use super::json_error::JsonError as Error;
use crate::envelope::{write_escaped, write_integer, write_string};

/// Appends `value` to `out`.
pub(super) fn serialize<T: Serialize + ?Sized>(out: &mut String, value: &T) -> Result<(), Error> {
    value.serialize(Serializer { out, raw: false })
}

/// The name under which `serde_json` passes raw values through unchanged.
pub(super) const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// All such names; the second marks numbers of arbitrary precision.
const RAW: [&str; 2] = [RAW_VALUE, "$serde_json::private::Number"];

struct Serializer<'o> {
    out: &'o mut String,
    /// Whether the value is the text of a raw value, which is written unchanged.
    raw: bool,
}

impl Serializer<'_> {
    fn push(self, text: &str) -> Result<(), Error> {
        append(self.out, text);
        Ok(())
    }

    fn display(self, value: impl fmt::Display) -> Result<(), Error> {
        write!(self.out, "{value}").map_err(|_| Error::custom("a Display failed"))
    }
}

impl<'o> Serializer<'o> {
    fn open(self, bracket: &str, close: &'static str) -> Compound<'o> {
        append(self.out, bracket);
        Compound { out: self.out, first: true, close }
    }

    fn open_variant(self, variant: &str, bracket: &str, close: &'static str) -> Compound<'o> {
        append(self.out, "{");
        write_key(self.out, true, variant);
        self.open(bracket, close)
    }
}

/// Appends text unchanged.
// Not generic and not inlined, like `write_key`: inlined code would be repeated for each field of
// each type.
#[inline(never)]
fn append(out: &mut String, text: &str) {
    // Most texts are one bracket or comma, for which a variable-length copy is slow to start.
    if let [byte] = text.as_bytes() {
        out.push(char::from(*byte));
    } else {
        out.push_str(text);
    }
}

/// Appends the key of a member, with a leading comma unless it is the first, and a colon.
#[inline(never)]
fn write_key(out: &mut String, first: bool, key: &str) {
    out.reserve(key.len() + 4);
    if !first {
        out.push(',');
    }
    out.push('"');
    write_escaped(out, key);
    out.push_str("\":");
}

// Widened, because a device would contain a formatter for each width.
macro_rules! integers {
    ($($method:ident: $type:ty as $widened:ty),*) => {$(
        fn $method(self, value: $type) -> Result<(), Error> {
            write_integer(self.out, <$widened>::from(value));
            Ok(())
        }
    )*};
}

impl<'o> ser::Serializer for Serializer<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'o>;
    type SerializeTuple = Compound<'o>;
    type SerializeTupleStruct = Compound<'o>;
    type SerializeTupleVariant = Compound<'o>;
    type SerializeMap = Compound<'o>;
    type SerializeStruct = Compound<'o>;
    type SerializeStructVariant = Compound<'o>;

    integers!(
        serialize_i8: i8 as i64, serialize_i16: i16 as i64, serialize_i32: i32 as i64,
        serialize_i64: i64 as i64, serialize_i128: i128 as i128, serialize_u8: u8 as u64,
        serialize_u16: u16 as u64, serialize_u32: u32 as u64, serialize_u64: u64 as u64,
        serialize_u128: u128 as u128
    );

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.push(if value { "true" } else { "false" })
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        let mut digits = zmij::Buffer::new();
        self.push(if value.is_finite() { digits.format_finite(value) } else { "null" })
    }

    // Not with `Debug`, which takes seven kilobytes of a device image.
    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        let mut digits = zmij::Buffer::new();
        self.push(if value.is_finite() { digits.format_finite(value) } else { "null" })
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if self.raw {
            return self.push(value);
        }
        write_string(self.out, value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.push("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.push("null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.push("null")
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        append(self.out, "{");
        write_key(self.out, true, variant);
        serialize(self.out, value)?;
        append(self.out, "}");
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'o>, Error> {
        Ok(self.open("[", "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'o>, Error> {
        Ok(self.open("[", "]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'o>, Error> {
        Ok(self.open("[", "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'o>, Error> {
        Ok(self.open_variant(variant, "[", "]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'o>, Error> {
        Ok(self.open("{", "}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Compound<'o>, Error> {
        if RAW.contains(&name) {
            return Ok(Compound { out: self.out, first: true, close: RAW_CLOSE });
        }
        Ok(self.open("{", "}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'o>, Error> {
        Ok(self.open_variant(variant, "{", "}}"))
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        struct Escape<'o>(&'o mut String);

        impl fmt::Write for Escape<'_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                write_escaped(self.0, text);
                Ok(())
            }
        }

        if self.raw {
            return self.display(value);
        }
        self.out.push('"');
        write!(Escape(self.out), "{value}").map_err(|_| Error::custom("a Display failed"))?;
        self.out.push('"');
        Ok(())
    }
}

/// An array or an object under construction.
struct Compound<'o> {
    out: &'o mut String,
    first: bool,
    close: &'static str,
}

/// Closing text of a value whose only field is raw text.
const RAW_CLOSE: &str = "";

impl Compound<'_> {
    /// Returns whether the next element is the first.
    const fn is_first(&mut self) -> bool {
        core::mem::replace(&mut self.first, false)
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        if !self.is_first() {
            append(self.out, ",");
        }
        serialize(self.out, value)
    }

    fn member<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        if self.close == RAW_CLOSE {
            return value.serialize(Serializer { out: self.out, raw: true });
        }
        let first = self.is_first();
        write_key(self.out, first, key);
        serialize(self.out, value)
    }

    fn close(self) {
        append(self.out, self.close);
    }
}

macro_rules! sequences {
    ($($trait:ident: $method:ident),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        }
    )*};
}

sequences!(
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
);

macro_rules! structs {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.member(key, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        }
    )*};
}

structs!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let first = self.is_first();
        key.serialize(key::Serializer { out: self.out, first })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        serialize(self.out, value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

mod key;

#[cfg(test)]
mod tests;
