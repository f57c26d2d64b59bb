use mcp_sansio_handlers::{Call, Server};

#[derive(serde::Deserialize)]
struct Place {
    location: String,
}

fn main() {
    let _server = Server::new("demo", "1.0.0")
        .tool("forecast", "Weather", async |call: Call<Place>| call.arguments.location);
}
