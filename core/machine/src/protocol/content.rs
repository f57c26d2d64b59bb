//! Content blocks in tool results, prompts and conversations with models.

use alloc::format;
use alloc::string::String;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Revision;
use super::annotations::Annotations;
use super::message::{message, tagged};
use super::meta::Meta;
use super::resource::{Resource, ResourceContents};
use super::wire::{AtRevision, SerializeAt};
use crate::jsonrpc::RawJson;

tagged! {
    /// A block of content in a tool's result or a prompt's message.
    ///
    /// A kind that a revision does not support is written as another one, because a result without
    /// its content would be misleading: audio at 2024-11-05 as an embedded resource with the same
    /// bytes, and a resource link before 2025-06-18 as a text with the name and the URI of the
    /// resource.
    // MCP 2024-11-05 server/tools#tool-result [TOOL-012]
    // MCP 2025-03-26 server/tools#tool-result [TOOL-013]
    // MCP 2026-07-28 server/tools#tool-result [TOOL-014], MCP 2026-07-28 schema.json#Resource
    // [META-014]
    pub enum ContentBlock by "type", before that plain_text {
        /// A text.
        Text(TextContent) = Some("text"),
        /// An image.
        Image(ImageContent) = Some("image"),
        /// Audio; since 2025-03-26.
        Audio(AudioContent) = Some("audio"),
        /// A link to a resource that can be read if needed; since 2025-06-18.
        ResourceLink(Resource) = Some("resource_link"),
        /// A resource with its contents.
        Resource(EmbeddedResource) = Some("resource"),
    }
}

/// Fast path for a block of text without other members, the most common form.
fn plain_text(json: &RawJson<'_>) -> Option<ContentBlock> {
    json.string_between(r#"{"type":"text","text":"#, "}").map(ContentBlock::text)
}

impl ContentBlock {
    /// Creates a block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Returns the text of a text block.
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
            // MCP 2024-11-05 server/tools#tool-result [TOOL-012]: audio is not supported.
            Self::Audio(content) if revision < Revision::V2025_03_26 => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("type", "resource")?;
                map.serialize_entry("resource", &EmbeddedAudio(content))?;
                end_with(content.annotations.as_ref(), revision, map)
            }
            Self::Audio(content) => content.serialize_at(revision, serializer),
            // MCP 2025-03-26 server/tools#tool-result [TOOL-013]: links are not supported.
            Self::ResourceLink(link) if revision < Revision::V2025_06_18 => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", &link_as_text(link))?;
                end_with(link.annotations.as_ref(), revision, map)
            }
            Self::ResourceLink(link) => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("type", "resource_link")?;
                link.write_fields(revision, &mut map)?;
                map.end()
            }
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
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            annotations: Annotations = "annotations" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

message! {
    /// An image.
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
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            annotations: Annotations = "annotations" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

message! {
    /// Audio; since 2025-03-26.
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
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            annotations: Annotations = "annotations" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

impl AudioContent {
    /// The URI of audio that is embedded as a resource. It is not resolvable.
    pub const EMBEDDED_URI: &str = "about:audio";
}

/// The resource that contains audio, for the revision without audio.
struct EmbeddedAudio<'a>(&'a AudioContent);

impl Serialize for EmbeddedAudio<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("uri", AudioContent::EMBEDDED_URI)?;
        map.serialize_entry("blob", &self.0.data)?;
        map.serialize_entry("mimeType", &self.0.mime_type)?;
        map.end()
    }
}

/// Returns the text of a link for revisions without links.
fn link_as_text(link: &Resource) -> String {
    let name = link.title.as_ref().unwrap_or(&link.name);
    match &link.description {
        Some(description) => format!("{name} ({description}): {}", link.uri),
        None => format!("{name}: {}", link.uri),
    }
}

/// Writes the hints of a block that takes the form of another kind, and ends it.
fn end_with<M: SerializeMap>(
    hints: Option<&Annotations>,
    revision: Revision,
    mut map: M,
) -> Result<M::Ok, M::Error> {
    if let Some(hints) = hints {
        map.serialize_entry("annotations", &AtRevision(hints, revision))?;
    }
    map.end()
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
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
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
    fn a_text_block_parses_regardless_of_its_formatting() {
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
    fn audio_becomes_an_embedded_resource_at_2024_11_05() {
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
    fn every_kind_of_content_supports_annotations_and_metadata() {
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
    fn a_resource_link_becomes_a_text_with_its_uri_at_older_revisions() {
        // Rule: [TOOL-013].
        let link = Resource::new("file:///a", "a").title("The A").description("first");
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
    fn metadata_on_content_is_omitted_before_2025_06_18() {
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
