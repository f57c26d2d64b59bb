//! A small server on standard input and output.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::stdio;
use rmcp::{ServiceExt, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// City name or postal code
    location: String,
}

#[derive(Clone)]
struct Weather;

#[tool_router(server_handler)]
impl Weather {
    #[tool(description = "Weather at a place")]
    fn forecast(&self, Parameters(place): Parameters<Place>) -> String {
        format!("Sunny in {}", place.location)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Weather.serve(stdio()).await?.waiting().await?;
    Ok(())
}
