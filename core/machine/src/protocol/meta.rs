//! The metadata of messages in `_meta`, and the rules for its keys.

mod key;

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::LoggingLevel;
use super::Revision;
use super::capabilities::ClientCapabilities;
use super::implementation::Implementation;
use super::map::superseded;
use super::progress::ProgressToken;
use super::task::RelatedTask;
use super::wire::{SerializeAt, Text};
use crate::InvalidValue;
use crate::jsonrpc::{Json, JsonError, Member, Members, RawJson, RequestId, write_string};

pub use key::{check_extension_id, check_key, is_reserved_key};
pub(crate) use key::{check_own_key, unwritable};

/// The metadata of a message: an object with arbitrary keys in their original order.
///
/// It is stored as text and parsed on access: empty metadata takes no memory, anything else takes
/// one text. Finding a key, counting and changing an entry take time in proportion to that text, as
/// does iterating with [`Meta::iter`].
///
/// Keys are unique regardless of their spelling: if a key is repeated, the last entry wins. Two
/// values are equal if they have the same entries in the same order, with the same text: values
/// that differ in white space are not equal.
///
/// The accessors return `None` for a key that is absent or has a value of another shape, because
/// metadata alone is never a reason to fail.
// MCP 2026-07-28 schema.json#MetaObject [META-001]: unknown keys are kept and ignored.
//
// Empty if there are no entries; otherwise an object without white space around its entries and
// with the shortest spelling of each key, so that equal metadata has equal text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Meta(String);

impl Meta {
    /// The revision of the request (2026-07-28).
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The identity of the client (2026-07-28).
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The capabilities of the client for this request (2026-07-28).
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The least severe log level to send for this request (2026-07-28).
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The subscription that a notification belongs to (2026-07-28).
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The identity of the server (2026-07-28).
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The task that a message belongs to (2025-11-25).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// A text for the model while a task runs (2025-11-25, provisional).
    pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
    /// The token for progress notifications of this request.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// W3C Trace Context: the parent span.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C Trace Context: vendor-specific data.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C Baggage.
    pub const BAGGAGE: &str = "baggage";

    /// Creates empty metadata.
    #[must_use]
    pub const fn new() -> Self {
        Self(String::new())
    }

    /// Sets `key` to `value` and returns the previous value.
    ///
    /// # Errors
    ///
    /// The value cannot be represented as JSON, or the key is [invalid](InvalidValue).
    pub fn set<T: Serialize + ?Sized>(
        &mut self,
        key: impl AsRef<str>,
        value: &T,
    ) -> Result<Option<Json>, JsonError> {
        // MCP 2026-07-28 basic/index#_meta [META-003] [META-004]
        check_own_key(key.as_ref()).map_err(|reason| unwritable(key.as_ref(), &reason))?;
        Ok(self.put(key.as_ref(), &Json::from_serialize(value)?))
    }

    /// Sets `key` to a JSON value and returns the previous value. The key is not checked, as it may
    /// be one of a peer.
    pub fn insert(&mut self, key: impl AsRef<str>, value: Json) -> Option<Json> {
        self.put(key.as_ref(), &value)
    }

    fn put(&mut self, key: &str, value: &Json) -> Option<Json> {
        match self.find(key) {
            Some(Member { value: known, range, .. }) => {
                let known = Json::from(known);
                self.0.replace_range(range, value.as_str());
                Some(known)
            }
            None => {
                append(&mut self.0, key, value.as_str());
                None
            }
        }
    }

    /// Removes `key` and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        /// The quotes around a key, and the colon.
        const PUNCTUATION: usize = 3;
        let Member { key, value, range, .. } = self.find(key)?;
        let value = Json::from(value);
        let (mut start, mut end) = (range.start - key.len() - PUNCTUATION, range.end);
        // Includes the comma between this entry and another one.
        if start > 1 {
            start -= 1;
        } else if self.0[end..].starts_with(',') {
            end += 1;
        }
        self.0.replace_range(start..end, "");
        if self.0.len() == RawJson::EMPTY_OBJECT.as_str().len() {
            self.0 = String::new();
        }
        Some(value)
    }

    /// Returns the value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<RawJson<'_>> {
        self.find(key).map(|member| member.value)
    }

    /// Returns the entries in order, with their keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, RawJson<'_>)> {
        self.members().map(|member| (member.name(), member.value))
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members().count()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the revision at [`Meta::PROTOCOL_VERSION`], as it is spelled.
    #[must_use]
    pub fn protocol_version(&self) -> Option<String> {
        self.decode(Self::PROTOCOL_VERSION)
    }

    /// Returns the client at [`Meta::CLIENT_INFO`].
    // MCP 2026-07-28 basic/index#_meta [META-010]: its absence is never a reason to reject a
    // request.
    #[must_use]
    pub fn client_info(&self) -> Option<Implementation> {
        self.decode(Self::CLIENT_INFO)
    }

    /// Returns the capabilities at [`Meta::CLIENT_CAPABILITIES`].
    #[must_use]
    pub fn client_capabilities(&self) -> Option<ClientCapabilities> {
        self.decode(Self::CLIENT_CAPABILITIES)
    }

    /// Returns the level at [`Meta::LOG_LEVEL`].
    #[must_use]
    pub fn log_level(&self) -> Option<LoggingLevel> {
        self.decode(Self::LOG_LEVEL)
    }

    /// Returns the subscription at [`Meta::SUBSCRIPTION_ID`].
    #[must_use]
    pub fn subscription_id(&self) -> Option<RequestId> {
        self.decode(Self::SUBSCRIPTION_ID)
    }

    /// Returns the server at [`Meta::SERVER_INFO`].
    #[must_use]
    pub fn server_info(&self) -> Option<Implementation> {
        self.decode(Self::SERVER_INFO)
    }

    /// Returns the task at [`Meta::RELATED_TASK`].
    #[must_use]
    pub fn related_task(&self) -> Option<RelatedTask> {
        self.decode(Self::RELATED_TASK)
    }

    /// Returns the token at [`Meta::PROGRESS_TOKEN`].
    #[must_use]
    pub fn progress_token(&self) -> Option<ProgressToken> {
        self.decode(Self::PROGRESS_TOKEN)
    }

    /// Checks every key against the grammar of [`check_key`], and that no other prefix than
    /// `io.modelcontextprotocol` is a reserved one.
    ///
    /// # Errors
    ///
    /// Returns the error of the first invalid key.
    pub fn check(&self) -> Result<(), InvalidValue> {
        self.iter().try_for_each(|(key, _)| check_own_key(&key))
    }

    fn decode<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.get(key)?.decode_lossy().ok().map(|(value, _)| value)
    }

    fn members(&self) -> Members<'_> {
        Members::new(&self.0)
    }

    fn find(&self, key: &str) -> Option<Member<'_>> {
        self.members().find(|member| member.is_named(key))
    }

    /// Returns the complete object.
    fn as_raw(&self) -> RawJson<'_> {
        if self.0.is_empty() { RawJson::EMPTY_OBJECT } else { RawJson::trusted(&self.0) }
    }

    /// Removes entries whose key is repeated later.
    fn distinct(self) -> Self {
        let superseded = superseded(self.members().map(|member| member.key).zip(0..).collect());
        if superseded.is_empty() {
            return self;
        }
        let mut text = String::new();
        for ((key, value), place) in self.iter().zip(0_usize..) {
            if superseded.binary_search(&place).is_err() {
                append(&mut text, &key, value.as_str());
            }
        }
        Self(text)
    }
}

/// Appends an entry to an object, or starts an object if the text is empty.
fn append(object: &mut String, key: &str, value: &str) {
    /// The quotes of the key, the colon, a comma or the opening brace, and the closing brace.
    const PUNCTUATION: usize = 5;
    let length = key.len() + value.len() + PUNCTUATION;
    if object.pop().is_some() {
        object.reserve(length);
        object.push(',');
    } else {
        *object = String::with_capacity(length);
        object.push('{');
    }
    write_string(object, key);
    object.push(':');
    object.push_str(value);
    object.push('}');
}

impl FromIterator<(String, Json)> for Meta {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(entries: I) -> Self {
        let mut text = String::new();
        for (key, value) in entries {
            append(&mut text, &key, value.as_str());
        }
        Self(text).distinct()
    }
}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meta").field(&self.as_raw()).finish()
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MetaVisitor;

        impl<'de> Visitor<'de> for MetaVisitor {
            type Value = Meta;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Meta, A::Error> {
                let (mut text, mut count) = (String::new(), 0_usize);
                while let Some((key, value)) = access.next_entry::<Text<'de>, RawJson<'de>>()? {
                    append(&mut text, &key.0, value.as_str());
                    count += 1;
                }
                let meta = Meta(text);
                Ok(if count > 1 { meta.distinct() } else { meta })
            }
        }

        deserializer.deserialize_map(MetaVisitor)
    }
}

impl SerializeAt for Meta {
    fn serialize_at<S: Serializer>(&self, _: Revision, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_raw().serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
