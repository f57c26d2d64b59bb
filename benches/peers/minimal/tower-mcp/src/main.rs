//! A small server on standard input and output.

use schemars::JsonSchema;
use serde::Deserialize;
use tower_mcp::{CallToolResult, McpRouter, StdioTransport, ToolBuilder};

#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    /// City name or postal code
    location: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let forecast = ToolBuilder::new("forecast")
        .description("Weather at a place")
        .handler(|place: Place| async move {
            Ok(CallToolResult::text(format!("Sunny in {}", place.location)))
        })
        .build();
    let router = McpRouter::new().server_info("weather", "1.0.0").tool(forecast);
    StdioTransport::new(router).run().await?;
    Ok(())
}
