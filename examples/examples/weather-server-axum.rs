//! A complete HTTP server in an axum application with other routes.

#![allow(clippy::print_stderr, reason = "a command line program")]

use axum::Router;
use axum::routing::get;
use mcp_sansio_tokio::{self as mcp, Call, HttpServerOptions, HttpService, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// City name or postal code
    location: String,
}

#[tokio::main]
async fn main() -> Result<(), mcp::Error> {
    let server = Server::new("weather", "1.0.0").tool(
        "forecast",
        "Weather at a place",
        async |call: Call<Place>| {
            call.progress(1.0, Some(2.0), "asking the station");
            format!("Sunny in {}", call.arguments.location)
        },
    );
    let service = HttpService::new(&server, HttpServerOptions::new())?;
    let router =
        Router::new().route("/health", get(async || "fine")).route_service("/mcp", service);

    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    let listener = TcpListener::bind(address).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(axum::serve(listener, router).await?)
}
