use mcp_sansio_handlers::{Call, Server};

#[derive(schemars::JsonSchema)]
struct Place {
    location: String,
}

fn main() {
    let _server = Server::new("demo", "1.0.0")
        .tool("forecast", "Weather", |call: Call<Place>| call.arguments.location);
}
