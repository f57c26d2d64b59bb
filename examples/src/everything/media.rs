//! The smallest picture and the shortest sound.

/// A PNG of one red pixel, in base64.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Its media type.
pub(super) const PNG_TYPE: &str = "image/png";

/// A WAV of a millisecond of silence, in base64.
pub(super) const WAV: &str =
    "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

/// Its media type.
pub(super) const WAV_TYPE: &str = "audio/wav";
