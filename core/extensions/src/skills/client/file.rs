use alloc::string::String;
use alloc::sync::Arc;

use mcp_sansio::protocol::{ReadResourceResult, ResourceContents};

use super::error::VerificationError;
use super::id::SkillId;
use crate::skills::digest::SkillDigest;
use crate::skills::entry::SkillResource;

/// A file of a skill, with its origin.
///
/// The content comes from a server, and is as trustworthy as the server: tag it with
/// [`origin`](Self::origin) where it enters the context of a model. A `SKILL.md` of another skill
/// that was read as a file is text: its frontmatter has no effect.
// MCP 2026-07-28 skills:skills#nested-skills [SKILL-025]
// MCP 2026-07-28 skills:skills#security-considerations [SKILL-096]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    pub(super) origin: SkillId,
    pub(super) uri: String,
    pub(super) content: Content,
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) bytes: Arc<[u8]>,
    pub(super) media_type: Option<String>,
}

impl SkillFile {
    /// Returns the skill that the file was read for, with the host's label of its server.
    #[must_use]
    pub const fn origin(&self) -> &SkillId {
        &self.origin
    }

    /// Returns the URI of the file.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.content.bytes
    }

    /// Returns the text, if the bytes are UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        core::str::from_utf8(&self.content.bytes).ok()
    }

    /// Returns the media type that the server sent, if it sent one.
    #[must_use]
    pub fn media_type(&self) -> Option<&str> {
        self.content.media_type.as_deref()
    }
}

impl Content {
    /// Takes the contents of `uri` from the answer of the server.
    pub(super) fn from_result(
        uri: &str,
        result: ReadResourceResult,
    ) -> Result<Self, VerificationError> {
        let invalid = || VerificationError::Contents { uri: uri.into() };
        let mut contents = result.contents.into_iter();
        let (Some(only), None) = (contents.next(), contents.next()) else { return Err(invalid()) };
        let (named, bytes, media_type) = match only {
            ResourceContents::Text(text) => {
                (text.uri, Arc::from(text.text.into_bytes()), text.mime_type)
            }
            ResourceContents::Blob(blob) => {
                let bytes = blob.bytes().map_err(|_| invalid())?;
                (blob.uri, Arc::from(bytes), blob.mime_type)
            }
            _ => return Err(invalid()),
        };
        if named != uri {
            return Err(invalid());
        }
        Ok(Self { bytes, media_type })
    }

    /// Compares the content with the entry of its skill.
    // MCP 2026-07-28 skills:skills#verification-on-read [SKILL-072] [SKILL-073]
    // MCP 2026-07-28 skills:skills#resources [SKILL-050]
    pub(super) fn verify(&self, entry: &SkillResource) -> Result<(), VerificationError> {
        let (uri, expected, received) = (&entry.uri, entry.size, self.bytes.len() as u64);
        if received != expected {
            return Err(VerificationError::Size { uri: uri.clone(), expected, received });
        }
        if SkillDigest::of(&self.bytes) != entry.digest {
            return Err(VerificationError::Digest { uri: uri.clone() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use mcp_sansio::protocol::{BlobResourceContents, TextResourceContents};

    use super::*;

    #[test]
    fn contents_of_another_file_are_not_taken() {
        let text = |uri: &str| ResourceContents::from(TextResourceContents::new(uri, "x"));
        let read = |contents| Content::from_result("a:b", ReadResourceResult::new(contents));
        assert_eq!(read(vec![text("a:b")]).unwrap().bytes[..], *b"x");
        let blob = BlobResourceContents::from_bytes("a:b", &[0xff]);
        assert_eq!(read(vec![blob.into()]).unwrap().bytes[..], [0xff]);
        for contents in [
            vec![],
            vec![text("a:c")],
            vec![text("a:b"), text("a:b")],
            vec![BlobResourceContents::new("a:b", "no base64!").into()],
        ] {
            assert_eq!(read(contents), Err(VerificationError::Contents { uri: "a:b".into() }));
        }
    }

    #[test]
    fn content_is_compared_by_size_and_digest() {
        // Rule: [SKILL-072] [SKILL-050].
        let content = Content { bytes: b"abc"[..].into(), media_type: None };
        let entry = SkillResource::of("a:b", b"abc");
        assert_eq!(content.verify(&entry), Ok(()));
        let (uri, expected, received) = ("a:b".into(), 4, 3);
        let longer = SkillResource { size: 4, ..entry.clone() };
        let size = VerificationError::Size { uri, expected, received };
        assert_eq!(content.verify(&longer), Err(size));
        let other = SkillResource { digest: SkillDigest::of(b"abd"), ..entry };
        assert_eq!(content.verify(&other), Err(VerificationError::Digest { uri: "a:b".into() }));
    }
}
