use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytestring::ByteString;
use serde::de::{
    self, Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor,
};
use serde::ser::{Error as _, Serialize, SerializeStruct, Serializer};

use super::deserializer::{deserialize, deserialize_lossy};
use super::id::RequestId;
use super::json_error::JsonError;
use super::members::Members;
use super::omission::{Omissions, Omitted};
use super::serializer::{RAW_VALUE, serialize};
use super::text::{resolved, unquote};
use crate::envelope::scan::{Outer, Scanner};
use crate::envelope::{JsonText, Written};

/// One JSON value as validated text that is not parsed further.
///
/// Borrows from the frame that contained it, or shares a reference-counted allocation; cloning
/// never copies the text. Deserialize it into your own type with [`RawJson::decode`].
///
/// ```
/// use mcp_sansio::jsonrpc::RawJson;
///
/// let params = RawJson::parse(r#"{"name":"forecast","arguments":{"days":3}}"#)?;
/// let name: String = params.get("name").expect("a member").decode()?;
/// assert_eq!(name, "forecast");
/// assert_eq!(params.get("arguments").expect("a member").as_str(), r#"{"days":3}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct RawJson<'a>(Text<'a>);

#[derive(Clone)]
enum Text<'a> {
    Borrowed(&'a str),
    Shared(ByteString),
}

impl<'a> RawJson<'a> {
    /// An empty object.
    pub const EMPTY_OBJECT: RawJson<'static> = RawJson(Text::Borrowed("{}"));
    /// `null`.
    pub const NULL: RawJson<'static> = RawJson(Text::Borrowed("null"));

    /// Validates that `text` is exactly one JSON value.
    ///
    /// # Errors
    ///
    /// Fails if `text` is not JSON, which is the caller's fault.
    pub fn parse(text: &'a str) -> Result<Self, JsonError> {
        let mut scanner = Scanner::new(text);
        scanner.peek();
        let start = scanner.at();
        let checked = scanner.value_within(&mut Vec::new()).map(|()| scanner.since(start));
        let checked = checked.and_then(|value| scanner.end().map(|()| value));
        checked.map(Self::trusted).map_err(|_| {
            let at = scanner.at();
            JsonError::custom(format_args!("not JSON, at byte {at}"))
        })
    }

    /// Serializes `value`.
    ///
    /// # Errors
    ///
    /// Fails if the value has no JSON form (a map whose keys are not strings, or a failing
    /// `Serialize` implementation), which is the caller's fault.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<RawJson<'static>, JsonError> {
        // The crate's own serializer is used, because with `serde_json`'s each message type would
        // be compiled for two serializers.
        let mut text = String::new();
        serialize(&mut text, value)?;
        Ok(Self::trusted_shared(text.into()))
    }

    /// Wraps text that the caller knows to be one JSON value. The text is not validated: a peer
    /// cannot parse messages that contain invalid text.
    #[must_use]
    pub const fn trusted(text: &'a str) -> Self {
        Self(Text::Borrowed(text))
    }

    /// Like [`trusted`](Self::trusted), for an owned string.
    #[must_use]
    pub fn trusted_string(text: String) -> RawJson<'static> {
        RawJson(Text::Shared(text.into()))
    }

    /// Like [`trusted`](Self::trusted), for shared text.
    pub(crate) const fn trusted_shared(text: ByteString) -> RawJson<'static> {
        RawJson(Text::Shared(text))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }

    /// Deserializes the value. Strings without escapes and nested [`RawJson`] borrow from it.
    ///
    /// # Errors
    ///
    /// Fails if the value does not have the shape of `T`, which is the fault of its author. The
    /// error names the place as a JSON Pointer, and the expected type.
    pub fn decode<'s, T: Deserialize<'s>>(&'s self) -> Result<T, JsonError> {
        deserialize(self.as_str())
    }

    /// Like [`decode`](Self::decode), but one malformed element does not hide the others: it is
    /// left out of its list, and described. That holds for the lists of objects and of completions
    /// in the results that a server sends. A hint that is malformed is left out alone: a display
    /// name, an icon and its sizes, annotations, the size of a resource, how long a result may be
    /// cached. In all other lists, and elsewhere, a defect is an error.
    ///
    /// Reading takes longer, so decode first, and use this if that fails.
    ///
    /// ```
    /// use mcp_sansio::jsonrpc::RawJson;
    /// use mcp_sansio::protocol::ListRootsResult;
    ///
    /// let result = RawJson::parse(r#"{"roots":[{"uri":"file:///a"},{"uri":7}]}"#)?;
    /// assert!(result.decode::<ListRootsResult>().is_err());
    /// let (roots, omissions) = result.decode_lossy::<ListRootsResult>()?;
    /// assert_eq!(roots.roots.len(), 1);
    /// assert_eq!(
    ///     omissions.to_string(),
    ///     "`/roots/1`: `/uri`: invalid type: integer `7`, expected a string",
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the value, without malformed elements of lists, does not have the shape of `T`.
    pub fn decode_lossy<T: DeserializeOwned>(&self) -> Result<(T, Omissions), JsonError> {
        let omitted = Omitted::default();
        let value = deserialize_lossy(self.as_str(), &omitted)?;
        Ok((value, omitted.into_omissions(self.as_str())))
    }

    /// Returns a copy without the members of objects that are `null`, in the outermost `depth` levels
    /// of arrays and objects, or `None` if there are none. Members of the outermost object that `kept`
    /// names are kept. One pass, without recursion.
    #[must_use]
    pub fn without_null_members(
        &self,
        kept: &[Cow<'_, str>],
        depth: usize,
    ) -> Option<RawJson<'static>> {
        let mut text = String::with_capacity(self.as_str().len());
        let mut scanner = Scanner::new(self.as_str());
        let (mut key, mut key_start, mut level, mut removed) = (Written::default(), 0, 0, false);
        while let Some(next) = scanner.peek() {
            let at = scanner.at();
            if next == b'"' {
                key_start = text.len();
                key = scanner.string()?;
            } else if next == b'n'
                && level <= depth
                && text.ends_with(':')
                && (level > 1 || !kept.contains(&resolved(key)))
            {
                scanner.trusted_value();
                // One of the commas around the member goes with it.
                let comma = !scanner.eat(b',')
                    && text.get(..key_start).is_some_and(|before| before.ends_with(','));
                text.truncate(key_start - usize::from(comma));
                removed = true;
                continue;
            } else {
                scanner.bump();
                match next {
                    b'{' | b'[' => level += 1,
                    b'}' | b']' => level -= 1,
                    _ => {}
                }
            }
            text.push_str(scanner.since(at));
        }
        removed.then(|| RawJson::trusted_string(text))
    }

    /// Converts the value to one that does not borrow from the frame. Copies borrowed text and
    /// shares shared text.
    #[must_use]
    pub fn into_owned(self) -> RawJson<'static> {
        RawJson(Text::Shared(match self.0 {
            Text::Borrowed(text) => String::from(text).into(),
            Text::Shared(text) => text,
        }))
    }

    /// Iterates over the members of an object; each member borrows from the frame. The iterator is
    /// empty for text that is not borrowed from a frame; use [`RawJson::members`] for that.
    pub(crate) fn walk(&self) -> Members<'a> {
        Members::new(self.frame_text())
    }

    /// Borrows the value as text.
    pub(crate) fn view(&self) -> JsonText<'_> {
        JsonText::trusted(self.as_str())
    }

    /// Returns the text if it is borrowed from a frame, and otherwise an empty string.
    pub(crate) fn frame_text(&self) -> &'a str {
        match &self.0 {
            Text::Borrowed(text) => text,
            Text::Shared(_) => "",
        }
    }

    /// Returns the text if it is shared.
    pub(crate) const fn shared(&self) -> Option<&ByteString> {
        match &self.0 {
            Text::Borrowed(_) => None,
            Text::Shared(text) => Some(text),
        }
    }

    /// Returns the content of a JSON string with its escapes resolved, or `None` if the value is
    /// not a string.
    #[must_use]
    pub fn to_text(&self) -> Option<Cow<'a, str>> {
        match &self.0 {
            Text::Borrowed(text) => unquote(text),
            Text::Shared(text) => unquote(text).map(|text| Cow::Owned(text.into_owned())),
        }
    }

    /// Returns the string that is everything between `opening` and `closing`, with its escapes
    /// resolved.
    pub(crate) fn string_between(&self, opening: &str, closing: &str) -> Option<Cow<'_, str>> {
        let text = self.as_str().strip_prefix(opening)?.strip_suffix(closing)?;
        let mut scanner = Scanner::new(text);
        let string = scanner.string()?;
        if scanner.at() == text.len() { string.resolve() } else { None }
    }

    /// Returns the value as a number, or `None` if it is not a number of this type.
    pub(crate) fn to_number<T: for<'de> Deserialize<'de>>(&self) -> Option<T> {
        // For other values, decoding would build an error message that repeats the value at any
        // length.
        let number =
            self.as_str().starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if number { self.decode().ok() } else { None }
    }

    /// Returns the value as a request id, if it is one.
    pub(crate) fn to_id(&self) -> Option<RequestId> {
        self.view().to_id().map(RequestId::from)
    }

    /// Borrows the value.
    #[must_use]
    pub fn borrow(&self) -> RawJson<'_> {
        RawJson(Text::Borrowed(self.as_str()))
    }
}

impl<'a> From<JsonText<'a>> for RawJson<'a> {
    #[inline]
    fn from(value: JsonText<'a>) -> Self {
        Self::trusted(value.as_str())
    }
}

/// Text that is borrowed from a frame; otherwise a value without members.
impl<'a> From<&RawJson<'a>> for JsonText<'a> {
    fn from(value: &RawJson<'a>) -> Self {
        Self::trusted(value.frame_text())
    }
}

/// Text of any depth, on the heap.
impl Outer for Vec<u128> {
    fn push(&mut self, objects: u128) -> bool {
        self.push(objects);
        true
    }

    fn pop(&mut self) -> Option<u128> {
        self.pop()
    }
}

impl fmt::Debug for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for RawJson<'_> {
    /// Compares the text: values that differ only in white space are not equal.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for RawJson<'_> {}

impl Serialize for RawJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // This is the encoding of `serde_json`'s own raw values, which would validate the text
        // again.
        let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
        raw.serialize_field(RAW_VALUE, self.as_str())?;
        raw.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Accepts the form in which `serde_json` passes raw values: a map with one text under a
        /// reserved name. `serde_json`'s own type accepts either a borrowed or an owned text, but
        /// not both.
        struct RawVisitor;

        impl<'de> Visitor<'de> for RawVisitor {
            type Value = RawJson<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any valid JSON value")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RawJson<'de>, M::Error> {
                match map.next_entry::<IgnoredAny, ValueText<'de>>()? {
                    Some((_, ValueText(Cow::Borrowed(text)))) => Ok(RawJson::trusted(text)),
                    Some((_, ValueText(Cow::Owned(text)))) => {
                        Ok(RawJson(Text::Shared(text.into())))
                    }
                    None => Err(de::Error::invalid_type(de::Unexpected::Map, &self)),
                }
            }
        }

        /// Text that is borrowed if the source allows it.
        #[derive(serde::Deserialize)]
        #[serde(transparent)]
        struct ValueText<'a>(#[serde(borrow)] Cow<'a, str>);

        deserializer.deserialize_newtype_struct(RAW_VALUE, RawVisitor)
    }
}

/// One JSON value as owned text, for message fields that outlive a frame.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(RawJson<'static>);

impl Json {
    /// Serializes a value; see [`RawJson::from_serialize`].
    ///
    /// # Errors
    ///
    /// Fails if the value has no JSON form, which is the caller's fault.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        RawJson::from_serialize(value).map(Self)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Borrows the value.
    #[must_use]
    pub fn as_raw(&self) -> RawJson<'_> {
        self.0.borrow()
    }

    /// Deserializes the value.
    ///
    /// # Errors
    ///
    /// Fails if the value does not have the shape of `T`, which is the fault of its author.
    pub fn decode<'s, T: Deserialize<'s>>(&'s self) -> Result<T, JsonError> {
        self.0.decode()
    }
}

impl From<RawJson<'_>> for Json {
    fn from(value: RawJson<'_>) -> Self {
        Self(value.into_owned())
    }
}

impl From<Json> for RawJson<'static> {
    fn from(value: Json) -> Self {
        value.0
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawJson::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::envelope::scan::DEPTH_MAX;

    #[test]
    fn checked_text_is_one_value_without_surrounding_whitespace() {
        assert_eq!(RawJson::parse(" [1, 2]\n").expect("JSON").as_str(), "[1, 2]");
        for text in ["", " ", "[1", "1 2", "{\"a\":1}}", "nul"] {
            assert!(RawJson::parse(text).is_err(), "{text}");
        }
        let error = RawJson::parse("[1,}").expect_err("no value");
        assert_eq!(error.to_string(), "not JSON, at byte 3");
        let nested = |depth| ["[".repeat(depth), "]".repeat(depth)].concat();
        for depth in [DEPTH_MAX, DEPTH_MAX + 1, 2 * DEPTH_MAX, 2 * DEPTH_MAX + 1, 5000] {
            assert!(RawJson::parse(&nested(depth)).is_ok(), "{depth}");
            assert!(RawJson::parse(&nested(depth)[1..]).is_err(), "{depth}");
            assert!(RawJson::parse(&nested(depth)[..2 * depth - 1]).is_err(), "{depth}");
        }
        let mixed = |depth| [r#"[{"a":[0,"#.repeat(depth), "]},1]".repeat(depth)].concat();
        assert!(RawJson::parse(&mixed(1000).replace("0,]", "0]")).is_ok());
        assert!(RawJson::parse(&mixed(1000).replace("0,]", "0}")).is_err());
    }

    #[test]
    fn raw_text_passes_through_other_serializers_unchanged() {
        let text = r#"{"b": 1.0,"a":[]}"#;
        let value = RawJson::parse(text).expect("JSON");
        assert_eq!(serde_json::to_string(&value).expect("JSON"), text);
        assert_eq!(serde_json::to_value(&value).expect("JSON")["b"], 1.0);
    }
}
