//! Servers on HTTP.

use std::io::Write;
use std::net::SocketAddr;

use mcp_sansio::handler::Server;
use mcp_sansio::http::ServerOptions;
use mcp_sansio_tokio::{HttpListener, HttpService};
use tokio::net::TcpListener;

use crate::runtime::Place;

/// Serves on `address` until the process is told to end, and says when it is ready.
///
/// # Errors
///
/// What is wrong, in words.
pub fn serve(place: &Place, server: &Server, address: &str) -> Result<(), String> {
    let mut options = ServerOptions::new();
    if place.legacy_sse {
        options = options.legacy_sse("/sse", "/messages");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| format!("cannot listen on {address}: {error}"))?;
        let local = listener.local_addr().map_err(|error| error.to_string())?;
        let service = HttpService::new(server, options).map_err(|error| error.to_string())?;
        announce(local);
        HttpListener::new(listener).serve(service, told_to_end()).await;
        Ok(())
    })
}

/// Says that a server listens at `address`: whoever started it waits for this line.
pub fn announce(address: SocketAddr) {
    // Nobody is left to tell if this fails.
    let _ = writeln!(std::io::stderr(), "listening on http://{address}/mcp");
}

/// Done when the process is told to end.
async fn told_to_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let terminated = async {
            match signal(SignalKind::terminate()) {
                Ok(mut terminate) => drop(terminate.recv().await),
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = terminated => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    }
    #[cfg(not(unix))]
    drop(tokio::signal::ctrl_c().await);
}
