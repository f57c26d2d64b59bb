//! What a server says of itself since 2026-07-28, where there is no handshake.

use alloc::string::String;
use alloc::vec::Vec;

use super::cache::{CacheScope, Ttl, cacheable};
use super::capabilities::ServerCapabilities;
use super::message::message;
use super::meta::Meta;
use super::revision::Revision;

message! {
    /// The result of `server/discover`; since 2026-07-28. Who the server is stands in its metadata.
    // MCP 2026-07-28 schema.json#DiscoverResult [DISC-002]
    pub struct DiscoverResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// The revisions that the server speaks, which may be ones that this crate does not
            /// know.
            supported_versions: Vec<String> = "supportedVersions" in ALL;
            /// What it offers.
            capabilities: ServerCapabilities = "capabilities" in ALL;
        }
        defaulted {
            /// How long the result stays fresh, in milliseconds.
            ttl_ms: Ttl = "ttlMs" in MODERN;
            /// Who may share it.
            cache_scope: CacheScope = "cacheScope" in MODERN;
        }
        optional {
            /// How to use the server, for the model.
            instructions: String = "instructions" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

cacheable!(DiscoverResult);

impl DiscoverResult {
    /// The revisions that both sides know, in the server's order.
    // MCP 2026-07-28 basic/versioning#protocol-version-negotiation [DISC-004]: the list may mix
    // eras.
    pub fn known_revisions(&self) -> impl Iterator<Item = Revision> {
        self.supported_versions.iter().filter_map(|text| Revision::parse(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_versions_are_passed_over() {
        // Rule: [DISC-002] [DISC-004].
        let result: DiscoverResult = serde_json::from_str(
            r#"{"supportedVersions":["2030-01-01","2026-07-28","2025-11-25"],"capabilities":{}}"#,
        )
        .unwrap();
        assert!(result.known_revisions().eq([Revision::V2026_07_28, Revision::V2025_11_25]));
        assert_eq!(result.cache_hints(), crate::protocol::CacheHints::default());
    }
}
