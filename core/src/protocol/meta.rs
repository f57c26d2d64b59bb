//! `_meta`: metadata beside the fields of a message, and the rules for its keys.

use alloc::string::String;

use serde::Deserialize;
use serde::ser::{Serialize, Serializer};

use super::capabilities::ClientCapabilities;
use super::implementation::Implementation;
use super::logging::LoggingLevel;
use super::map::Map;
use super::progress::ProgressToken;
use super::revision::Revision;
use super::task::RelatedTask;
use super::wire::Wire;
use crate::jsonrpc::{Json, RequestId};

pub use key::{InvalidMetaKey, check_extension_id, check_key, is_reserved_key};

/// The metadata of a message: an object with free keys, in the order it came.
///
/// Values are kept as text; the accessors give `None` for a key that is absent or holds something
/// of another shape, as metadata is never a reason to fail by itself.
// MCP 2026-07-28 schema.json#MetaObject [META-001]: unknown keys are kept and ignored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Meta(Map<Json>);

impl Meta {
    /// The revision that a request is made at (2026-07-28).
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who makes the request (2026-07-28).
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the client can do for this request (2026-07-28).
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The lowest level of log messages wanted for this request (2026-07-28).
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The subscription that a notification belongs to (2026-07-28).
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Who gives the result (2026-07-28).
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The task that a message belongs to (2025-11-25).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// A text for the model while a task runs (2025-11-25, provisional).
    pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
    /// The token that progress of this request is to be reported under.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// W3C Trace Context: the parent span.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C Trace Context: what tracing systems add.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C Baggage.
    pub const BAGGAGE: &str = "baggage";

    /// No metadata.
    #[must_use]
    pub const fn new() -> Self {
        Self(Map::new())
    }

    /// Sets `key` to `value` and gives back the text that was there.
    ///
    /// # Errors
    ///
    /// The caller's fault: the value cannot be JSON.
    pub fn set<T: Serialize + ?Sized>(
        &mut self,
        key: impl Into<String>,
        value: &T,
    ) -> Result<Option<Json>, serde_json::Error> {
        Ok(self.0.insert(key, Json::from_serialize(value)?))
    }

    /// Sets `key` to a value that is JSON already and gives back the one that was there.
    pub fn insert(&mut self, key: impl Into<String>, value: Json) -> Option<Json> {
        self.0.insert(key, value)
    }

    /// Removes `key` and gives back its value.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        self.0.remove(key)
    }

    /// The value at `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.get(key)
    }

    /// The entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.0.iter()
    }

    /// The number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The revision at [`Meta::PROTOCOL_VERSION`], as it is spelled.
    #[must_use]
    pub fn protocol_version(&self) -> Option<String> {
        self.decode(Self::PROTOCOL_VERSION)
    }

    /// The client at [`Meta::CLIENT_INFO`].
    // MCP 2026-07-28 basic/index#_meta [META-010]: its absence is never a reason to reject.
    #[must_use]
    pub fn client_info(&self) -> Option<Implementation> {
        self.decode(Self::CLIENT_INFO)
    }

    /// The capabilities at [`Meta::CLIENT_CAPABILITIES`].
    #[must_use]
    pub fn client_capabilities(&self) -> Option<ClientCapabilities> {
        self.decode(Self::CLIENT_CAPABILITIES)
    }

    /// The level at [`Meta::LOG_LEVEL`].
    #[must_use]
    pub fn log_level(&self) -> Option<LoggingLevel> {
        self.decode(Self::LOG_LEVEL)
    }

    /// The subscription at [`Meta::SUBSCRIPTION_ID`].
    #[must_use]
    pub fn subscription_id(&self) -> Option<RequestId> {
        self.decode(Self::SUBSCRIPTION_ID)
    }

    /// The server at [`Meta::SERVER_INFO`].
    #[must_use]
    pub fn server_info(&self) -> Option<Implementation> {
        self.decode(Self::SERVER_INFO)
    }

    /// The task at [`Meta::RELATED_TASK`].
    #[must_use]
    pub fn related_task(&self) -> Option<RelatedTask> {
        self.decode(Self::RELATED_TASK)
    }

    /// The token at [`Meta::PROGRESS_TOKEN`].
    #[must_use]
    pub fn progress_token(&self) -> Option<ProgressToken> {
        self.decode(Self::PROGRESS_TOKEN)
    }

    /// Checks every key against the grammar of [`check_key`].
    ///
    /// # Errors
    ///
    /// The writer's fault: the first key that breaks it.
    pub fn check(&self) -> Result<(), InvalidMetaKey> {
        self.iter().try_for_each(|(key, _)| check_key(key))
    }

    fn decode<'a, T: Deserialize<'a>>(&'a self, key: &str) -> Option<T> {
        self.get(key)?.decode().ok()
    }
}

impl FromIterator<(String, Json)> for Meta {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl Wire for Meta {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_at(revision, serializer)
    }
}

#[path = "meta_key.rs"]
mod key;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_keys_have_typed_accessors() {
        // Rule: [META-010] [META-015].
        let meta: Meta = serde_json::from_str(
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
                "io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},
                "io.modelcontextprotocol/clientCapabilities":{"sampling":{}},
                "io.modelcontextprotocol/logLevel":"error",
                "io.modelcontextprotocol/subscriptionId":"s",
                "io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"},
                "io.modelcontextprotocol/related-task":{"taskId":"t"}}"#,
        )
        .unwrap();
        assert_eq!(meta.protocol_version().as_deref(), Some("2026-07-28"));
        assert_eq!(meta.client_info(), Some(Implementation::new("c", "1")));
        assert!(meta.client_capabilities().unwrap().sampling.is_some());
        assert_eq!(meta.log_level(), Some(LoggingLevel::Error));
        assert_eq!(meta.subscription_id(), RequestId::try_from("s").ok());
        assert_eq!(meta.server_info(), Some(Implementation::new("s", "2")));
        assert_eq!(meta.related_task(), Some(RelatedTask::new("t")));
        assert_eq!(Meta::new().client_info(), None);
    }

    #[test]
    fn a_value_of_another_shape_reads_as_absent() {
        let meta: Meta = serde_json::from_str(
            r#"{"io.modelcontextprotocol/logLevel":"loud","progressToken":7,"x":null}"#,
        )
        .unwrap();
        assert_eq!(meta.log_level(), None);
        assert_eq!(meta.progress_token(), Some(ProgressToken::Number(7)));
        // Rule: [META-001].
        assert_eq!(
            meta.to_json_at(Revision::LATEST).unwrap().as_str(),
            r#"{"io.modelcontextprotocol/logLevel":"loud","progressToken":7,"x":null}"#
        );
    }
}
