//! The test kit, applied to itself.

mod arguments;
mod attributes;
mod calls;
mod faults;
mod handler_shapes;
mod http;
mod running;
mod script;
mod transcript;
mod transport;

use mcp_sansio::protocol::CallToolResult;
use mcp_sansio_handlers::{Call, NoArguments, Server};

/// A server whose tool answers at once, and one whose tool never answers.
fn server() -> Server {
    Server::new("clock", "1.0.0").tool("now", "The time", |_: Call<NoArguments>| "noon").tool(
        "wait",
        "Never ends",
        async |_: Call<NoArguments>| core::future::pending::<String>().await,
    )
}

/// Returns the text of a tool result.
fn text(result: &CallToolResult) -> &str {
    result.content.iter().find_map(|block| block.as_text()).unwrap_or_default()
}
