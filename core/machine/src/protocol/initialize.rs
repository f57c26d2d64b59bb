//! The handshake of the revisions until 2025-11-25.

use alloc::string::String;

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
