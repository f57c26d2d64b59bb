//! Resources: their descriptions, their contents and templates.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::annotations::Annotations;
use super::cache::{CacheScope, Ttl, cacheable};
use super::implementation::Icon;
use super::message::{forward_wire, message};
use super::meta::Meta;
use crate::jsonrpc::{Json, RawJson};

message! {
    /// A resource that a server provides.
    // MCP 2026-07-28 schema.json#Resource [RSRC-001]
    pub struct Resource {
        required {
            /// The URI.
            uri: String = "uri" in ALL;
            /// The programmatic name.
            name: String = "name" in ALL;
        }
        defaulted {}
        optional {
            /// The display name; since 2025-06-18.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            title: String = "title" in SINCE_2025_06_18;
            /// A description for the model.
            description: String = "description" in ALL;
            /// The media type.
            mime_type: String = "mimeType" in ALL;
            /// The size in bytes, before any encoding.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            size: u64 as u64 = "size" in ALL;
            /// Icons; since 2025-11-25.
            #[serde(deserialize_with = "crate::jsonrpc::list_of_hints")]
            icons: Vec<Icon> = "icons" in SINCE_2025_11_25;
            /// Hints.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            annotations: Annotations = "annotations" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

message! {
    /// A family of resources, described by a URI template.
    // MCP 2026-07-28 server/resources#resource-templates [RSRC-002]
    pub struct ResourceTemplate {
        required {
            /// The RFC 6570 template of their URIs.
            uri_template: String = "uriTemplate" in ALL;
            /// The programmatic name.
            name: String = "name" in ALL;
        }
        defaulted {}
        optional {
            /// The display name; since 2025-06-18.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            title: String = "title" in SINCE_2025_06_18;
            /// A description for the model.
            description: String = "description" in ALL;
            /// The media type, if it is the same for all of them.
            mime_type: String = "mimeType" in ALL;
            /// Icons; since 2025-11-25.
            #[serde(deserialize_with = "crate::jsonrpc::list_of_hints")]
            icons: Vec<Icon> = "icons" in SINCE_2025_11_25;
            /// Hints.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            annotations: Annotations = "annotations" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

/// The contents of a resource: text or bytes.
// MCP 2026-07-28 server/resources#reading-resources [RSRC-003]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResourceContents {
    /// Text.
    Text(TextResourceContents),
    /// Bytes.
    Blob(BlobResourceContents),
    /// Any other contents, kept and written back unchanged.
    Unknown(Json),
}

forward_wire!(ResourceContents { Text, Blob, Unknown });

impl ResourceContents {
    /// Returns the text, if they are text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(contents) => Some(&contents.text),
            _ => None,
        }
    }
}

impl From<TextResourceContents> for ResourceContents {
    fn from(contents: TextResourceContents) -> Self {
        Self::Text(contents)
    }
}

impl From<BlobResourceContents> for ResourceContents {
    fn from(contents: BlobResourceContents) -> Self {
        Self::Blob(contents)
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Probe<'a> {
            #[serde(borrow)]
            text: Option<RawJson<'a>>,
            #[serde(borrow)]
            blob: Option<RawJson<'a>>,
        }

        let json = Json::deserialize(deserializer)?;
        let probe: Probe<'_> = json.decode().map_err(D::Error::custom)?;
        match (probe.text, probe.blob) {
            (Some(_), _) => json.decode().map(Self::Text),
            (None, Some(_)) => json.decode().map(Self::Blob),
            (None, None) => Ok(Self::Unknown(json)),
        }
        .map_err(D::Error::custom)
    }
}

message! {
    /// A resource, or a part of one, as text.
    pub struct TextResourceContents {
        required {
            /// The URI.
            uri: String = "uri" in ALL;
            /// The text.
            text: String = "text" in ALL;
        }
        defaulted {}
        optional {
            /// The media type.
            mime_type: String = "mimeType" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

message! {
    /// A resource, or a part of one, as bytes.
    pub struct BlobResourceContents {
        required {
            /// The URI.
            uri: String = "uri" in ALL;
            /// The bytes, in base64.
            blob: String = "blob" in ALL;
        }
        defaulted {}
        optional {
            /// The media type.
            mime_type: String = "mimeType" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

message! {
    /// The parameters of `resources/read`. Reading them borrows from the frame.
    pub struct ReadResourceParams<'a> {
        required {
            /// The resource.
            #[serde(borrow)]
            uri: Cow<'a, str> = "uri" in ALL;
        }
        defaulted {}
        optional {
            /// Responses to the server's input requests; since 2026-07-28. Decodes to
            /// [`InputResponses`](super::InputResponses).
            #[serde(borrow)]
            input_responses: RawJson<'a> = "inputResponses" in MODERN;
            /// The state that was sent with those requests; since 2026-07-28.
            #[serde(borrow, deserialize_with = "super::wire::optional_text")]
            request_state: Cow<'a, str> = "requestState" in MODERN;
            /// Metadata. Decodes to [`Meta`].
            #[serde(borrow)]
            meta: RawJson<'a> = "_meta" in ALL;
        }
    }
}

impl ReadResourceParams<'_> {
    /// Converts into parameters that own their data.
    #[must_use]
    pub fn into_owned(self) -> ReadResourceParams<'static> {
        ReadResourceParams {
            uri: Cow::Owned(self.uri.into_owned()),
            input_responses: self.input_responses.map(RawJson::into_owned),
            request_state: self.request_state.map(|state| Cow::Owned(state.into_owned())),
            meta: self.meta.map(RawJson::into_owned),
        }
    }
}

message! {
    /// The parameters of `notifications/resources/updated`.
    pub struct ResourceUpdatedParams {
        required {
            /// The URI of the resource, possibly a part of the subscribed one.
            uri: String = "uri" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The result of `resources/read`.
    pub struct ReadResourceResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// The contents; a resource may have several.
            #[serde(deserialize_with = "crate::jsonrpc::list")]
            contents: Vec<ResourceContents> = "contents" in ALL;
        }
        defaulted {
            /// How long the result stays fresh, in milliseconds; since 2026-07-28.
            ttl_ms: Ttl = "ttlMs" in MODERN;
            /// Whether it may be shared between users; since 2026-07-28.
            cache_scope: CacheScope = "cacheScope" in MODERN;
        }
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The result of `resources/list`.
    pub struct ListResourcesResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// This page of the resources.
            #[serde(deserialize_with = "crate::jsonrpc::list")]
            resources: Vec<Resource> = "resources" in ALL;
        }
        defaulted {
            /// How long the result stays fresh, in milliseconds; since 2026-07-28.
            ttl_ms: Ttl = "ttlMs" in MODERN;
            /// Whether it may be shared between users; since 2026-07-28.
            cache_scope: CacheScope = "cacheScope" in MODERN;
        }
        optional {
            /// The cursor of the next page; `None` on the last page.
            next_cursor: String = "nextCursor" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The result of `resources/templates/list`.
    pub struct ListResourceTemplatesResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// This page of the templates.
            #[serde(deserialize_with = "crate::jsonrpc::list")]
            resource_templates: Vec<ResourceTemplate> = "resourceTemplates" in ALL;
        }
        defaulted {
            /// How long the result stays fresh, in milliseconds; since 2026-07-28.
            ttl_ms: Ttl = "ttlMs" in MODERN;
            /// Whether it may be shared between users; since 2026-07-28.
            cache_scope: CacheScope = "cacheScope" in MODERN;
        }
        optional {
            /// The cursor of the next page; `None` on the last page.
            next_cursor: String = "nextCursor" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

impl ReadResourceResult {
    /// Returns the text of the first contents that are text.
    #[must_use]
    pub fn first_text(&self) -> Option<&str> {
        self.contents.iter().find_map(ResourceContents::as_text)
    }
}

cacheable!(ReadResourceResult, ListResourcesResult, ListResourceTemplatesResult);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Revision, SerializeAt};

    #[test]
    fn parameters_borrow_from_the_frame() {
        let frame = r#"{"uri":"file:///a","requestState":"s","inputResponses":{"k":{}}}"#;
        let params: ReadResourceParams<'_> = serde_json::from_str(frame).unwrap();
        assert!(matches!(params.uri, Cow::Borrowed("file:///a")));
        assert!(matches!(params.request_state, Some(Cow::Borrowed("s"))));
        assert_eq!(
            params.to_json_at(Revision::V2025_11_25).unwrap().as_str(),
            r#"{"uri":"file:///a"}"#
        );
        assert_eq!(params.clone().into_owned(), params);
    }

    #[test]
    fn the_first_text_of_a_resource_may_follow_other_contents() {
        let bytes = ResourceContents::from(BlobResourceContents::new("a:b", "AA=="));
        let mut result = ReadResourceResult::new([bytes]);
        assert_eq!(result.first_text(), None);
        let texts = ["a", "b"].map(|text| TextResourceContents::new("a:b", text).into());
        result.contents.extend(texts);
        assert_eq!(result.first_text(), Some("a"));
    }

    #[test]
    fn contents_are_distinguished_by_their_members() {
        // Rule: [RSRC-003].
        let read = |text| serde_json::from_str::<ResourceContents>(text);
        assert!(matches!(read(r#"{"uri":"a:b","text":""}"#), Ok(ResourceContents::Text(_))));
        assert!(matches!(read(r#"{"uri":"a:b","blob":""}"#), Ok(ResourceContents::Blob(_))));
        assert!(matches!(read(r#"{"uri":"a:b"}"#), Ok(ResourceContents::Unknown(_))));
        assert!(read(r#"{"text":"no address"}"#).is_err());
    }

    #[test]
    fn a_resource_has_the_fields_of_its_revision() {
        // Rule: [RSRC-001].
        let read = |text: &str| serde_json::from_str::<Resource>(text);
        let bare = r#"{"uri":"a:b","name":"n"}"#;
        assert_eq!(read(bare).unwrap(), Resource::new("a:b", "n"));
        for lacking in [r#"{"name":"n"}"#, r#"{"uri":"a:b"}"#] {
            assert!(read(lacking).is_err(), "{lacking}");
        }
        for (size, whole) in [("7", true), ("0", true), ("1.5", false), ("-1", false)] {
            let text = bare.replace('}', &alloc::format!(r#","size":{size}}}"#));
            assert_eq!(read(&text).is_ok(), whole, "{size}");
        }
        let full = Resource::new("a:b", "n")
            .title("t")
            .description("d")
            .mime_type("m/n")
            .size(7)
            .icons([Icon::new("data:,")])
            .annotations(Annotations::new().priority(0.5));
        let text = |title, icons| {
            alloc::format!(
                r#"{{"uri":"a:b","name":"n"{title},"description":"d","mimeType":"m/n","size":7{icons},"annotations":{{"priority":0.5}}}}"#
            )
        };
        let (title, icons) = (r#","title":"t""#, r#","icons":[{"src":"data:,"}]"#);
        for (revision, expected) in [
            (Revision::V2024_11_05, text("", "")),
            (Revision::V2025_03_26, text("", "")),
            (Revision::V2025_06_18, text(title, "")),
            (Revision::V2025_11_25, text(title, icons)),
            (Revision::V2026_07_28, text(title, icons)),
        ] {
            assert_eq!(full.to_json_at(revision).unwrap().as_str(), expected, "{revision}");
        }
        assert_eq!(read(&text(title, icons)).unwrap(), full);
    }

    #[test]
    fn null_for_a_field_with_a_default_is_the_same_as_absent() {
        let read: ListResourcesResult =
            serde_json::from_str(r#"{"resources":[],"ttlMs":null,"cacheScope":null}"#).unwrap();
        assert_eq!(read, ListResourcesResult::new([]));
    }

    #[test]
    fn a_cacheable_result_always_has_caching_hints() {
        // Rule: [CACHE-001].
        let result = ListResourcesResult::new([]);
        assert_eq!(
            result.to_json_at(Revision::LATEST).unwrap().as_str(),
            r#"{"resultType":"complete","resources":[],"ttlMs":0,"cacheScope":"private"}"#
        );
        assert_eq!(
            result.to_json_at(Revision::LATEST_LEGACY).unwrap().as_str(),
            r#"{"resources":[]}"#
        );
    }
}
