//! A complete server without a runtime.

use mcp_sansio_std::{self as mcp, Call, Server};
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
        async |call: Call<Place>| {
            call.progress(1.0, Some(2.0), "asking the station");
            format!("Sunny in {}", call.arguments.location)
        },
    );
    mcp::serve_stdio(server)
}
