//! Who is speaking: name, version, and what a person may be shown of it.

use alloc::string::String;
use alloc::vec::Vec;

use super::message::{message, word};

message! {
    /// A client or a server, as it introduces itself.
    pub struct Implementation {
        required {
            /// The name that programs know it by.
            name: String = "name" in ALL;
            /// Its version, in whatever scheme it uses.
            version: String = "version" in ALL;
        }
        defaulted {}
        optional {
            /// The name that people are shown; since 2025-06-18.
            title: String = "title" in SINCE_2025_06_18;
            /// What it is for; since 2025-11-25.
            description: String = "description" in SINCE_2025_11_25;
            /// Pictures to show; since 2025-11-25.
            icons: Vec<Icon> = "icons" in SINCE_2025_11_25;
            /// Its home page; since 2025-11-25.
            website_url: String = "websiteUrl" in SINCE_2025_11_25;
        }
    }
}

message! {
    /// A picture that stands for something, as an address to fetch it from; since 2025-11-25.
    pub struct Icon {
        required {
            /// An `https:` or `data:` URI.
            src: String = "src" in ALL;
        }
        defaulted {}
        optional {
            /// The media type, where the source does not say it or says it wrongly.
            mime_type: String = "mimeType" in ALL;
            /// The sizes that it is made for, each `WxH` in pixels or `any`.
            sizes: Vec<String> = "sizes" in ALL;
            /// The background that it is made for.
            theme: IconTheme = "theme" in ALL;
        }
    }
}

word! {
    /// The background that an icon is made for.
    pub enum IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}
