//! The identity of a client or a server: name, version and display information.

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::{Deserialize as _, Deserializer, Error as _};

use super::message::{message, word};

message! {
    /// The identity of a client or a server.
    pub struct Implementation {
        required {
            /// The programmatic name.
            name: String = "name" in ALL;
            /// Its version, in any scheme.
            version: String = "version" in ALL;
        }
        defaulted {}
        optional {
            /// The display name; since 2025-06-18.
            title: String = "title" in SINCE_2025_06_18;
            /// Its purpose; since 2025-11-25.
            description: String = "description" in SINCE_2025_11_25;
            /// Icons; since 2025-11-25.
            #[serde(deserialize_with = "crate::jsonrpc::list_of_hints")]
            icons: Vec<Icon> = "icons" in SINCE_2025_11_25;
            /// Its home page; since 2025-11-25.
            website_url: String = "websiteUrl" in SINCE_2025_11_25;
        }
    }
}

message! {
    /// An icon, as a URI to fetch it from; since 2025-11-25.
    pub struct Icon {
        required {
            /// An `https:` or `data:` URI.
            #[serde(deserialize_with = "safe_source")]
            src: String = "src" in ALL;
        }
        defaulted {}
        optional {
            /// The media type, if the source does not provide it or provides a wrong one.
            mime_type: String = "mimeType" in ALL;
            /// The sizes of the icon, each `WxH` in pixels or `any`.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            sizes: Vec<String> = "sizes" in ALL;
            /// The background that the icon is designed for.
            #[serde(deserialize_with = "crate::jsonrpc::hint")]
            theme: IconTheme = "theme" in ALL;
        }
    }
}

/// Reads the URI of an icon. One with another scheme is left out, like a malformed one.
// MCP 2026-07-28 basic/index#icons [SEC-001]: plain `http` remains, as the page lists it as a form.
fn safe_source<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let source = String::deserialize(deserializer)?;
    let is_safe = |(scheme, _): (&str, &str)| {
        ["https", "http", "data"].iter().any(|safe| scheme.eq_ignore_ascii_case(safe))
    };
    if source.split_once(':').is_some_and(is_safe) {
        Ok(source)
    } else {
        Err(D::Error::custom(
            "the URI of an icon has one of the schemes `https`, `http` and `data`",
        ))
    }
}

word! {
    /// The background that an icon is designed for.
    pub enum IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}
