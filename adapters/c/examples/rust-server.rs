//! One tool of the server in `stdio-server.c`, in Rust, to compare the calls in a second.

use mcp_sansio_std::jsonrpc::RawJson;
use mcp_sansio_std::protocol::Tool;
use mcp_sansio_std::{self as mcp, Call, Server};
use serde::Deserialize;

#[derive(Deserialize)]
struct Lamp {
    on: bool,
}

fn main() -> Result<(), mcp::Error> {
    let schema = r#"{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}"#;
    let schema = RawJson::parse(schema).expect("the schema is JSON");
    let server = Server::new("thermometer", "1.0.0").tool_with(
        Tool::new("switch_lamp", schema).description("Switches the lamp"),
        |call: Call<Lamp>| {
            if call.arguments.on { "The lamp is on." } else { "The lamp is off." }
        },
    );
    mcp::serve_stdio(server)
}
