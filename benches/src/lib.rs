//! Code under measurement: `benches/` measures time, and `src/bin/` counts instructions and
//! allocations.

pub mod budgets;
mod endpoints;
pub mod growth;
mod http_calls;
mod http_harness;
mod http_link;
mod link;
pub mod load;
pub mod sse;
#[cfg(feature = "telemetry")]
mod telemetry;
pub mod tools;

use mcp_sansio::Revision;
use mcp_sansio::jsonrpc::RawJson;
use serde_json::json;

pub use endpoints::{Echo, Endpoints};
pub use http_calls::HttpCalls;
pub use http_harness::{HttpHarness, Listening};
pub use http_link::HttpLink;
pub use link::{Link, LinkOptions};

/// The oldest revision, the latest one with sessions, and the one without.
pub const REVISIONS: [Revision; 3] =
    [Revision::V2024_11_05, Revision::V2025_11_25, Revision::V2026_07_28];

/// Returns a request without parameters.
#[must_use]
pub fn ping() -> String {
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into()
}

/// Returns a tool call with a text of `length` bytes.
#[must_use]
pub fn echo(length: usize) -> String {
    json!({
        "jsonrpc": "2.0",
        "id": 12345,
        "method": "tools/call",
        "params": { "name": "echo", "arguments": { "text": "x".repeat(length) } },
    })
    .to_string()
}

/// Returns the parameters of a tool call with a text of `length` bytes.
#[must_use]
pub fn echo_params(length: usize) -> RawJson<'static> {
    let params = json!({ "name": "echo", "arguments": { "text": "x".repeat(length) } });
    RawJson::from_serialize(&params).expect("a value is JSON")
}

/// Returns a response with many small values instead of one long string.
#[must_use]
pub fn tool_list(tools: usize) -> String {
    let tool = |number: usize| {
        json!({
            "name": format!("tool_{number}"),
            "description": "Looks something up, and says so in a \"sentence\".",
            "inputSchema": {
                "type": "object",
                "properties": { "a": { "type": "number", "minimum": -1.5 } },
                "required": ["a"],
            },
        })
    };
    let tools: Vec<_> = (0..tools).map(tool).collect();
    json!({ "jsonrpc": "2.0", "id": 7, "result": { "tools": tools } }).to_string()
}
