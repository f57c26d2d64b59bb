//! A minimal image and a minimal sound.

/// A PNG of one red pixel, in base64.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The media type of [`PNG`].
pub(super) const PNG_TYPE: &str = "image/png";

/// A WAV of one millisecond of silence in base64.
pub(super) const WAV: &str =
    "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

/// The media type of [`WAV`].
pub(super) const WAV_TYPE: &str = "audio/wav";
