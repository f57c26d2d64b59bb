//! A complete HTTP server on hyper alone.

#![allow(clippy::print_stderr, reason = "a command line program")]

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_tokio::{self as mcp, Call, HttpService, Server};
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

    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    let listener = TcpListener::bind(address).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        // Events are small and must be sent without delay.
        socket.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        let mut http = http1::Builder::new();
        let connection =
            http.timer(TokioTimer::new()).serve_connection(TokioIo::new(socket), service);
        // A failed connection does not affect the others.
        tokio::spawn(async { drop(connection.await) });
    }
}
