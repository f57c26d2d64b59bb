//! Roots: the directories and files that a client allows a server to work in.

use alloc::string::String;
use alloc::vec::Vec;

use super::message::message;
use super::meta::Meta;

message! {
    /// A directory or file that a server may work in.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// take directories and files as arguments, as URIs of resources or from the configuration.
    pub struct Root {
        required {
            /// The URI, with the scheme `file:`.
            uri: String = "uri" in ALL;
        }
        defaulted {}
        optional {
            /// The display name.
            name: String = "name" in ALL;
            /// Metadata; since 2025-06-18.
            meta: Meta = "_meta" in SINCE_2025_06_18;
        }
    }
}

impl Root {
    /// Returns whether it has a `file://` URI, which is currently required for all roots.
    // MCP 2025-11-25 client/roots#root [ROOT-002]
    #[must_use]
    pub fn is_file(&self) -> bool {
        let scheme = self.uri.as_bytes().get(..7);
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"file://"))
    }
}

message! {
    /// The parameters of `roots/list`.
    #[derive(Default)]
    pub struct ListRootsParams {
        required {}
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The result of `roots/list`.
    // MCP 2025-11-25 client/roots#listing-roots [ROOT-001]
    pub struct ListRootsResult {
        required {
            /// The roots.
            #[serde(deserialize_with = "crate::jsonrpc::list")]
            roots: Vec<Root> = "roots" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata; until 2025-11-25.
            meta: Meta = "_meta" in LEGACY;
        }
    }
}
