//! A minimal, fast server for benchmarks.

use std::sync::LazyLock;

use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::{Resource, ResourceContents, TextResourceContents};
use mcp_sansio_handlers::{Call, HandlerError, ReadResource, Server};
use schemars::JsonSchema;
use serde::Deserialize;

/// The length of `mem://blob` in bytes.
const BLOB_LENGTH: usize = 64 * 1024;

/// The maximum count for `progress`, because its notifications are queued in memory.
const COUNT_MAX: u32 = 1_000_000;

#[derive(Debug, Deserialize, JsonSchema)]
struct Echo {
    /// The text to echo
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Count {
    /// The number of notifications to send
    count: u32,
}

/// The contents of `mem://blob`, shared by all servers of a process.
static BLOB: LazyLock<String> = LazyLock::new(|| ('a'..='z').cycle().take(BLOB_LENGTH).collect());

/// Returns the server.
#[must_use]
pub fn server() -> Server {
    let mut limits = Limits::default();
    // Benchmarks send progress in a loop, so the limit is lifted.
    limits.progress_per_second_max = u32::MAX;
    Server::new("bench-server", env!("CARGO_PKG_VERSION"))
        .limits(limits)
        .tool("echo", "Sends the text back", |call: Call<Echo>| call.arguments.text)
        .tool("add", "Adds two numbers", |call: Call<Add>| {
            (call.arguments.a + call.arguments.b).to_string()
        })
        .tool("progress", "Reports progress, step by step", progress)
        .resource(
            Resource::new("mem://blob", "blob").mime_type("text/plain").size(BLOB_LENGTH as u64),
            |call: Call<ReadResource>| {
                let uri = call.arguments.uri.as_str();
                let contents = TextResourceContents::new(uri, BLOB.as_str());
                ResourceContents::Text(contents.mime_type("text/plain"))
            },
        )
}

fn progress(call: Call<Count>) -> Result<String, HandlerError> {
    if call.arguments.count > COUNT_MAX {
        return Err(HandlerError::failed(format!("at most {COUNT_MAX} notifications at once")));
    }
    let total = f64::from(call.arguments.count);
    for step in 1..=call.arguments.count {
        call.progress(f64::from(step), Some(total), "");
    }
    Ok(format!("{} steps", call.arguments.count))
}
