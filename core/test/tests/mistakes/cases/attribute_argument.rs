use mcp_sansio_macros::tool;

#[derive(serde::Deserialize)]
struct Place {
    city: String,
}

/// Weather
#[tool]
fn forecast(place: Place) -> String {
    place.city
}

fn main() {
    let _tool = forecast_tool();
}
