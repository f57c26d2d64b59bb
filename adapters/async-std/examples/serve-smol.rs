//! A small server on the standard streams, on smol.

use mcp_sansio_async_std::{self as mcp, Call, Server};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// City name or postal code
    location: String,
}

fn main() -> Result<(), mcp::Error> {
    let server = Server::new("weather", "1.0.0").tool(
        "forecast",
        "Weather at a place",
        async |call: Call<Place>| format!("Sunny in {}", call.arguments.location),
    );
    smol::block_on(mcp::serve_stdio(server))
}
