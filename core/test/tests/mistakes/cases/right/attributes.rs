use mcp_sansio_handlers::{HandlerError, Server, Structured};
use mcp_sansio_macros::tool;

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Reading {
    celsius: f64,
}

/// Measures
#[tool]
fn measure() -> Structured<Reading> {
    Structured(Reading { celsius: 21.5 })
}

/// Reads a file
#[tool(blocking)]
fn read(path: String) -> Result<String, HandlerError> {
    Ok(std::fs::read_to_string(path)?)
}

fn main() {
    let _server = Server::new("demo", "1.0.0").add_item(measure_tool()).add_item(read_tool());
}
