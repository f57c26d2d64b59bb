use mcp_sansio_macros::tool;

/// Measures
#[tool]
fn measure(place: String) -> f64 {
    place.len() as f64
}

fn main() {
    let _tool = measure_tool();
}
