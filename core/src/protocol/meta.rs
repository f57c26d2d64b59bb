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

/// A key that breaks the grammar for keys of `_meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMetaKey {
    /// The part before the `/` is not a list of labels.
    #[error(
        "a key prefix is labels joined by dots, each starting with a letter and ending with a \
         letter or digit, with hyphens only inside"
    )]
    Prefix,
    /// The part after the `/`, or the whole, is no name.
    #[error(
        "a key name starts and ends with a letter or digit, with hyphens, underscores and dots \
         only inside"
    )]
    Name,
    /// There is no prefix where one is needed.
    #[error("an extension identifier has a prefix")]
    NoPrefix,
}

/// Checks the form of a key of `_meta`: an optional prefix that ends in `/`, and a name, which may
/// be empty after a prefix.
///
/// # Errors
///
/// The writer's fault: see [`InvalidMetaKey`].
pub fn check_key(key: &str) -> Result<(), InvalidMetaKey> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    // MCP 2026-07-28 basic/index#_meta [META-003]: labels joined by dots.
    if prefix.is_some_and(|prefix| !prefix.split('.').all(is_label)) {
        return Err(InvalidMetaKey::Prefix);
    }
    // MCP 2026-07-28 basic/index#_meta [META-004]: unless empty, alphanumeric at both ends.
    let bytes = name.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    if ends.into_iter().flatten().all(u8::is_ascii_alphanumeric) && bytes.iter().all(inside) {
        Ok(())
    } else {
        Err(InvalidMetaKey::Name)
    }
}

/// Checks the form of an extension identifier: a key with a prefix.
///
/// # Errors
///
/// The writer's fault: see [`InvalidMetaKey`].
// MCP 2026-07-28 basic/versioning#extension-negotiation [CAP-024]: the prefix is mandatory.
pub fn check_extension_id(id: &str) -> Result<(), InvalidMetaKey> {
    if id.contains('/') { check_key(id) } else { Err(InvalidMetaKey::NoPrefix) }
}

/// Whether `key` belongs to the protocol itself at `revision`, so that nobody else may define it.
#[must_use]
pub fn is_reserved_key(key: &str, revision: Revision) -> bool {
    let Some((prefix, _)) = key.split_once('/') else {
        // MCP 2026-07-28 basic/index#_meta [META-013]: the bare keys of the protocol.
        return key == Meta::PROGRESS_TOKEN
            || revision >= Revision::V2026_07_28
                && [Meta::TRACEPARENT, Meta::TRACESTATE, Meta::BAGGAGE].contains(&key);
    };
    let label = match revision {
        // The first revisions have no rules for keys.
        Revision::V2024_11_05 | Revision::V2025_03_26 => None,
        // MCP 2025-06-18 basic/index#_meta [META-005]: the second label from the right.
        Revision::V2025_06_18 => prefix.rsplit('.').nth(1),
        // MCP 2025-11-25 basic/index#_meta [META-006]: the second label from the left.
        Revision::V2025_11_25 | Revision::V2026_07_28 => prefix.split('.').nth(1),
    };
    matches!(label, Some("modelcontextprotocol" | "mcp"))
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_the_grammar_of_prefix_and_name() {
        // Rule: [META-003] [META-004].
        for key in ["a", "progressToken", "com.example/", "com.ex-ample.v2/my_key.x-1", "x/9", ""] {
            assert_eq!(check_key(key), Ok(()), "{key}");
        }
        for key in ["/a", "1com/a", "com./a", "com..x/a", "com-/a", "-com/a", "c_m/a"] {
            assert_eq!(check_key(key), Err(InvalidMetaKey::Prefix), "{key}");
        }
        for key in ["_a", "a-", "a/b/c", "com.example/.a", "ä", "a b"] {
            assert_eq!(check_key(key), Err(InvalidMetaKey::Name), "{key}");
        }
    }

    #[test]
    fn an_extension_identifier_needs_a_prefix() {
        // Rule: [CAP-024].
        assert_eq!(check_extension_id("io.modelcontextprotocol/tasks"), Ok(()));
        assert_eq!(check_extension_id("tasks"), Err(InvalidMetaKey::NoPrefix));
        assert_eq!(check_extension_id("1/tasks"), Err(InvalidMetaKey::Prefix));
    }

    #[test]
    fn the_reserved_label_is_counted_from_the_right_and_later_from_the_left() {
        // Rule: [META-005].
        let june = Revision::V2025_06_18;
        for key in ["modelcontextprotocol.io/x", "mcp.dev/x", "tools.mcp.com/x"] {
            assert!(is_reserved_key(key, june), "{key}");
        }
        assert!(!is_reserved_key("io.modelcontextprotocol/x", june));
        // Rule: [META-006].
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            for key in ["io.modelcontextprotocol/x", "dev.mcp/x", "com.mcp.tools/x"] {
                assert!(is_reserved_key(key, revision), "{key}");
            }
            for key in ["com.example.mcp/x", "mcp.dev/x", "mcp/x"] {
                assert!(!is_reserved_key(key, revision), "{key}");
            }
        }
    }

    #[test]
    fn bare_trace_keys_are_reserved_in_the_newest_revision_only() {
        // Rule: [META-013].
        for key in ["traceparent", "tracestate", "baggage"] {
            assert!(is_reserved_key(key, Revision::V2026_07_28), "{key}");
            assert!(!is_reserved_key(key, Revision::V2025_11_25), "{key}");
        }
        assert!(!is_reserved_key("mine", Revision::V2026_07_28));
    }

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
