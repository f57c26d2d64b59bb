//! The handshake of the revisions until 2025-11-25, and the discovery that replaces it since 2026-07-28.

use alloc::string::String;
use alloc::vec::Vec;

use super::Revision;
use super::cache::{CacheScope, Ttl, cacheable};
use super::capabilities::{ClientCapabilities, ServerCapabilities};
use super::implementation::Implementation;
use super::message::message;
use super::meta::Meta;

message! {
    /// The parameters of `initialize`; until 2025-11-25.
    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-001]
    pub struct InitializeParams {
        required {
            /// The revision that the client requests, possibly one that this crate does not know.
            protocol_version: String = "protocolVersion" in ALL;
            /// The capabilities of the client.
            capabilities: ClientCapabilities = "capabilities" in ALL;
            /// The identity of the client.
            client_info: Implementation = "clientInfo" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The result of `initialize`; until 2025-11-25.
    // MCP 2025-11-25 basic/lifecycle#initialization [LIFE-002]
    pub struct InitializeResult {
        required {
            /// The revision that the server chose.
            protocol_version: String = "protocolVersion" in ALL;
            /// The capabilities of the server.
            capabilities: ServerCapabilities = "capabilities" in ALL;
            /// The identity of the server.
            server_info: Implementation = "serverInfo" in ALL;
        }
        defaulted {}
        optional {
            /// Instructions for the model on how to use the server.
            instructions: String = "instructions" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The result of `server/discover`; since 2026-07-28. The server's name is in the metadata.
    // MCP 2026-07-28 schema.json#DiscoverResult [DISC-002]
    pub struct DiscoverResult {
        tag "resultType" = "complete" in MODERN;
        required {
            /// The revisions that the server supports, including ones that this crate does not
            /// know.
            supported_versions: Vec<String> = "supportedVersions" in ALL;
            /// The capabilities of the server.
            capabilities: ServerCapabilities = "capabilities" in ALL;
        }
        defaulted {
            /// How long the result stays fresh, in milliseconds.
            ttl_ms: Ttl = "ttlMs" in MODERN;
            /// Whether the result may be shared between users.
            cache_scope: CacheScope = "cacheScope" in MODERN;
        }
        optional {
            /// Instructions for the model on how to use the server.
            instructions: String = "instructions" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

cacheable!(DiscoverResult);

impl DiscoverResult {
    /// Returns the revisions that both sides know, in the server's order.
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
    fn unknown_versions_are_skipped() {
        // Rule: [DISC-002] [DISC-004].
        let result: DiscoverResult = serde_json::from_str(
            r#"{"supportedVersions":["2030-01-01","2026-07-28","2025-11-25"],"capabilities":{}}"#,
        )
        .unwrap();
        assert!(result.known_revisions().eq([Revision::V2026_07_28, Revision::V2025_11_25]));
        assert_eq!(result.cache_hints(), crate::protocol::CacheHints::default());
    }
}
