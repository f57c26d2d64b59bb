//! Blocks of content: what tools return, prompts are made of, and models are given.

use alloc::format;
use alloc::string::String;

use serde::ser::Serializer;

use super::annotations::Annotations;
use super::implementation::Icon;
use super::message::{message, tagged};
use super::meta::Meta;
use super::resource::{BlobResourceContents, ResourceContents};
use super::revision::Revision;
use super::wire::SerializeAt;
use crate::jsonrpc::RawJson;

tagged! {
    /// A block of content in a tool's result or a prompt's message.
    ///
    /// Kinds that a revision does not have are written as ones that it has, as a result that lost
    /// its content would mislead: audio in 2024-11-05 as an embedded resource with the same bytes,
    /// and a resource link before 2025-06-18 as a text that names the resource and its URI.
    // MCP 2024-11-05 server/tools#tool-result [TOOL-012]
    // MCP 2025-03-26 server/tools#tool-result [TOOL-013]
    // MCP 2026-07-28 server/tools#tool-result [TOOL-014], MCP 2026-07-28 schema.json#Resource
    // [META-014]
    pub enum ContentBlock by "type", before that plain_text {
        /// A text.
        Text(TextContent) = Some("text"),
        /// A picture.
        Image(ImageContent) = Some("image"),
        /// A sound; since 2025-03-26.
        Audio(AudioContent) = Some("audio"),
        /// A resource to be read if needed; since 2025-06-18.
        ResourceLink(ResourceLink) = Some("resource_link"),
        /// A resource with its contents.
        Resource(EmbeddedResource) = Some("resource"),
    }
}

/// A block of text with nothing else, as nearly all peers write it: it is read at one glance.
fn plain_text(json: &RawJson<'_>) -> Option<ContentBlock> {
    json.string_between(r#"{"type":"text","text":"#, "}").map(ContentBlock::text)
}

impl ContentBlock {
    /// A block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The text, if it is a block of text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl SerializeAt for ContentBlock {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(content) => content.serialize_at(revision, serializer),
            Self::Image(content) => content.serialize_at(revision, serializer),
            // MCP 2024-11-05 server/tools#tool-result [TOOL-012]: there is no audio.
            Self::Audio(content) if revision < Revision::V2025_03_26 => {
                content.to_embedded().serialize_at(revision, serializer)
            }
            Self::Audio(content) => content.serialize_at(revision, serializer),
            // MCP 2025-03-26 server/tools#tool-result [TOOL-013]: there are no links.
            Self::ResourceLink(content) if revision < Revision::V2025_06_18 => {
                content.to_text().serialize_at(revision, serializer)
            }
            Self::ResourceLink(content) => content.serialize_at(revision, serializer),
            Self::Resource(content) => content.serialize_at(revision, serializer),
            Self::Unknown(json) => json.serialize_at(revision, serializer),
        }
    }
}

message! {
    /// A text.
    pub struct TextContent {
        tag "type" = "text" in ALL;
        required {
            /// The text.
            text: String = "text" in ALL;
        }
        defaulted {}
        optional {
            /// Hints.
            annotations: Annotations = "annotations" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

message! {
    /// A picture.
    pub struct ImageContent {
        tag "type" = "image" in ALL;
        required {
            /// The bytes, in base64.
            data: String = "data" in ALL;
            /// The media type, such as `image/png`.
            mime_type: String = "mimeType" in ALL;
        }
        defaulted {}
        optional {
            /// Hints.
            annotations: Annotations = "annotations" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

message! {
    /// A sound; since 2025-03-26.
    pub struct AudioContent {
        tag "type" = "audio" in ALL;
        required {
            /// The bytes, in base64.
            data: String = "data" in ALL;
            /// The media type, such as `audio/wav`.
            mime_type: String = "mimeType" in ALL;
        }
        defaulted {}
        optional {
            /// Hints.
            annotations: Annotations = "annotations" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

impl AudioContent {
    /// The URI of a sound that is embedded as a resource: it names no place, as there is none.
    pub const EMBEDDED_URI: &str = "about:audio";

    fn to_embedded(&self) -> EmbeddedResource {
        let blob = BlobResourceContents::new(Self::EMBEDDED_URI, self.data.as_str())
            .mime_type(self.mime_type.as_str());
        EmbeddedResource {
            resource: ResourceContents::Blob(blob),
            annotations: self.annotations.clone(),
            meta: None,
        }
    }
}

message! {
    /// A resource that the reader may fetch, named but not included; since 2025-06-18.
    pub struct ResourceLink {
        tag "type" = "resource_link" in ALL;
        required {
            /// Where it is.
            uri: String = "uri" in ALL;
            /// The name that programs know it by.
            name: String = "name" in ALL;
        }
        defaulted {}
        optional {
            /// The name that people are shown.
            title: String = "title" in ALL;
            /// What it is, for the model.
            description: String = "description" in ALL;
            /// Its media type.
            mime_type: String = "mimeType" in ALL;
            /// Its size in bytes, before any encoding.
            #[serde(deserialize_with = "super::wire::whole")]
            size: u64 as u64 = "size" in ALL;
            /// Pictures to show; since 2025-11-25.
            icons: alloc::vec::Vec<Icon> = "icons" in SINCE_2025_11_25;
            /// Hints.
            annotations: Annotations = "annotations" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

impl ResourceLink {
    fn to_text(&self) -> TextContent {
        let name = self.title.as_ref().unwrap_or(&self.name);
        let text = match &self.description {
            Some(description) => format!("{name} ({description}): {}", self.uri),
            None => format!("{name}: {}", self.uri),
        };
        TextContent { text, annotations: self.annotations.clone(), meta: None }
    }
}

message! {
    /// A resource with its contents.
    pub struct EmbeddedResource {
        tag "type" = "resource" in ALL;
        required {
            /// The contents.
            resource: ResourceContents = "resource" in ALL;
        }
        defaulted {}
        optional {
            /// Hints.
            annotations: Annotations = "annotations" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_at(block: &ContentBlock, revision: Revision) -> String {
        block.to_json_at(revision).unwrap().as_str().into()
    }

    #[test]
    fn a_text_is_the_same_however_it_is_written() {
        let read = |text: &str| RawJson::parse(text).unwrap().decode::<ContentBlock>();
        for text in [
            r#"{"type":"text","text":"a\"}b"}"#,
            r#"{"text":"a\"}b","type":"text"}"#,
            r#"{ "type": "text", "text": "a\"}b" }"#,
            r#"{"type":"text","text":"a\u0022}b","x":"y"}"#,
        ] {
            assert_eq!(read(text).unwrap(), ContentBlock::text("a\"}b"), "{text}");
        }
        let noted = read(r#"{"type":"text","text":"a","_meta":{"k":"v"}}"#).unwrap();
        assert!(matches!(noted, ContentBlock::Text(text) if text.meta.is_some()));
        for text in [
            r#"{"type":"text","text":"a","type":"text"}"#,
            r#"{"type":"text","text":"a","text":"b"}"#,
            r#"{"type":"text","text":1}"#,
            r#"{"type":"text","text":{}}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn audio_becomes_an_embedded_resource_where_it_is_unknown() {
        // Rule: [TOOL-012] [TOOL-013].
        let audio = ContentBlock::from(AudioContent::new("AAAA", "audio/wav"));
        assert_eq!(
            text_at(&audio, Revision::V2024_11_05),
            r#"{"type":"resource","resource":{"uri":"about:audio","blob":"AAAA","mimeType":"audio/wav"}}"#
        );
        assert_eq!(
            text_at(&audio, Revision::V2025_03_26),
            r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav"}"#
        );
    }

    #[test]
    fn every_kind_of_content_has_hints_and_since_there_is_any_metadata() {
        // Rule: [TOOL-012] [TOOL-014] [PRMT-005].
        let hints = r#""annotations":{"priority":0.5}"#;
        for (since, kind) in [
            (Revision::V2024_11_05, r#""type":"text","text":"t""#),
            (Revision::V2024_11_05, r#""type":"image","data":"AA==","mimeType":"image/png""#),
            (Revision::V2025_03_26, r#""type":"audio","data":"AA==","mimeType":"audio/wav""#),
            (Revision::V2025_06_18, r#""type":"resource_link","uri":"a:b","name":"n""#),
            (Revision::V2024_11_05, r#""type":"resource","resource":{"uri":"a:b","text":"t"}"#),
            (
                Revision::V2024_11_05,
                r#""type":"resource","resource":{"uri":"a:b","blob":"AA==","mimeType":"m/n"}"#,
            ),
        ] {
            let old = format!("{{{kind},{hints}}}");
            let new = format!(r#"{{{kind},{hints},"_meta":{{"a/b":1}}}}"#);
            let block: ContentBlock = serde_json::from_str(&new).unwrap();
            assert!(!matches!(block, ContentBlock::Unknown(_)), "{kind}");
            for revision in Revision::ALL.into_iter().filter(|revision| *revision >= since) {
                let expected = if revision < Revision::V2025_06_18 { &old } else { &new };
                assert_eq!(text_at(&block, revision), *expected, "{revision}");
            }
        }
        for lacking in [r#"{"text":"no address"}"#, r#"{"uri":7,"text":"t"}"#] {
            let text = format!(r#"{{"type":"resource","resource":{lacking}}}"#);
            assert!(serde_json::from_str::<ContentBlock>(&text).is_err(), "{lacking}");
        }
    }

    #[test]
    fn a_resource_link_becomes_a_text_with_its_uri_where_it_is_unknown() {
        // Rule: [TOOL-013].
        let link = ResourceLink::new("file:///a", "a").title("The A").description("first");
        assert_eq!(
            text_at(&link.into(), Revision::V2025_03_26),
            r#"{"type":"text","text":"The A (first): file:///a"}"#
        );
    }

    #[test]
    fn an_unknown_kind_survives_unchanged() {
        let text = r#"{"type":"hologram","depth":3,"_meta":{"k":null}}"#;
        let block: ContentBlock = serde_json::from_str(text).unwrap();
        assert!(matches!(block, ContentBlock::Unknown(_)));
        for revision in Revision::ALL {
            assert_eq!(text_at(&block, revision), text);
        }
    }

    #[test]
    fn a_known_kind_with_a_missing_field_is_refused() {
        assert!(serde_json::from_str::<ContentBlock>(r#"{"type":"text"}"#).is_err());
        assert!(serde_json::from_str::<ContentBlock>("7").is_err());
    }

    #[test]
    fn metadata_on_content_is_left_out_before_it_existed() {
        // Rule: [META-014].
        let mut meta = Meta::new();
        meta.set("k", &1).unwrap();
        let block = ContentBlock::from(TextContent::new("t").meta(meta));
        assert_eq!(text_at(&block, Revision::V2025_03_26), r#"{"type":"text","text":"t"}"#);
        assert_eq!(
            text_at(&block, Revision::V2025_06_18),
            r#"{"type":"text","text":"t","_meta":{"k":1}}"#
        );
    }
}
