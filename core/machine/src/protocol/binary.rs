//! The bytes of images, audio and blobs, which are encoded as base64.

use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::Error as _;

use super::content::{AudioContent, ContentBlock, ImageContent};
use super::resource::BlobResourceContents;
use crate::jsonrpc::JsonError;

/// Writes padding, as the schema format `byte` requires, and reads with or without it, because some
/// peers omit it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn decode(text: &str) -> Result<Vec<u8>, JsonError> {
    BASE64.decode(text).map_err(|error| JsonError::custom(format_args!("not base64: {error}")))
}

fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

impl ContentBlock {
    /// Creates an image from `bytes` with its media type, such as `image/png`.
    #[must_use]
    pub fn image(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::from_bytes(bytes, mime_type))
    }

    /// Creates audio content from `bytes` with its media type, such as `audio/wav`.
    #[must_use]
    pub fn audio(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::from_bytes(bytes, mime_type))
    }
}

// MCP 2026-07-28 server/prompts#image-content [PRMT-004]
impl ImageContent {
    /// Creates an image from `bytes` with its media type, such as `image/png`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self::new(encode(bytes), mime_type)
    }

    /// Returns the decoded bytes.
    ///
    /// # Errors
    ///
    /// [`data`](Self::data) is not base64.
    pub fn bytes(&self) -> Result<Vec<u8>, JsonError> {
        decode(&self.data)
    }
}

// MCP 2026-07-28 server/prompts#audio-content [PRMT-004]
impl AudioContent {
    /// Creates audio content from `bytes` with its media type, such as `audio/wav`.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self::new(encode(bytes), mime_type)
    }

    /// Returns the decoded bytes.
    ///
    /// # Errors
    ///
    /// [`data`](Self::data) is not base64.
    pub fn bytes(&self) -> Result<Vec<u8>, JsonError> {
        decode(&self.data)
    }
}

// MCP 2026-07-28 server/resources#binary-content [RSRC-015],
// MCP 2026-07-28 server/prompts#embedded-resources [PRMT-005]
impl BlobResourceContents {
    /// Creates the contents of the resource at `uri`, or a part of them, from `bytes`.
    #[must_use]
    pub fn from_bytes(uri: impl Into<String>, bytes: &[u8]) -> Self {
        Self::new(uri, encode(bytes))
    }

    /// Returns the decoded bytes.
    ///
    /// # Errors
    ///
    /// [`blob`](Self::blob) is not base64.
    pub fn bytes(&self) -> Result<Vec<u8>, JsonError> {
        decode(&self.blob)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_as_base64() {
        // Rule: [PRMT-004] [RSRC-015].
        let image = ImageContent::from_bytes(&[0xFF, 0xD8, 0, 1], "image/jpeg");
        assert_eq!((image.data.as_str(), image.mime_type.as_str()), ("/9gAAQ==", "image/jpeg"));
        assert_eq!(image.bytes(), Ok([0xFF, 0xD8, 0, 1].to_vec()));
        assert_eq!(AudioContent::from_bytes(b"RIFF", "audio/wav").data, "UklGRg==");
        let blob = BlobResourceContents::from_bytes("mem://a", b"");
        assert_eq!((blob.blob.as_str(), blob.bytes()), ("", Ok(Vec::new())));
    }

    #[test]
    fn only_missing_padding_is_tolerated() {
        // Rule: [PRMT-004].
        assert_eq!(ImageContent::new("/9gAAQ", "image/jpeg").bytes().map(|it| it.len()), Ok(4));
        assert!(ImageContent::new("/9gA*Q==", "image/jpeg").bytes().is_err());
        assert!(ImageContent::new("data:image/png;base64,AAAA", "image/png").bytes().is_err());
    }
}
