use mcp_sansio_handlers::Structured;
use mcp_sansio_macros::tool;

#[derive(serde::Serialize)]
struct Reading {
    celsius: f64,
}

/// Measures
#[tool]
fn measure() -> Structured<Reading> {
    Structured(Reading { celsius: 21.5 })
}

fn main() {
    let _tool = measure_tool();
}
