//! Servers on HTTP.

use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;

use mcp_sansio::handler::Server;
use mcp_sansio::http::ServerOptions;
use mcp_sansio_tokio::{HttpListener, HttpService};
use tokio::net::TcpListener;

use crate::protected;
use crate::runtime::Place;

/// Serves on `address` until the process is told to end, and says when it is ready.
///
/// # Errors
///
/// What is wrong, in words.
pub fn serve(place: &Place, server: &Server, address: &str) -> Result<(), String> {
    block_on(async {
        let (listener, local) = listen(address).await?;
        announce(local);
        run(place, server, listener).await
    })
}

/// The same for those alone who have signed in, at an authorization server that it starts as well;
/// the tool `writes` needs more than the others.
///
/// # Errors
///
/// What is wrong, in words.
pub fn serve_protected(
    place: &Place,
    server: Server,
    address: &str,
    writes: &str,
) -> Result<(), String> {
    block_on(async {
        let (listener, local) = listen(address).await?;
        let authorization_server = protected::authorization_server(protected::options()).await;
        let authorization_server = authorization_server.map_err(|error| error.to_string())?;
        let url = format!("http://{local}/mcp");
        let server = protected::protect(server, &url, authorization_server.issuer(), writes)
            .map_err(|error| error.to_string())?;
        announce(local);
        // Nobody is left to tell if this fails.
        let _ = writeln!(
            std::io::stderr(),
            "users sign in at {}: try `mcp-inspect tools --url {url} --sign-in`",
            authorization_server.issuer()
        );
        run(place, &server, listener).await
    })
}

/// The same as [`serve`] without a runtime: whoever tells the process to end ends it at once.
///
/// # Errors
///
/// What is wrong, in words.
pub fn serve_blocking(place: &Place, server: &Server, address: &str) -> Result<(), String> {
    let listener = std::net::TcpListener::bind(address);
    let listener = listener.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let service = mcp_sansio_std::HttpService::new(server, options(place));
    let service = service.map_err(|error| error.to_string())?;
    announce(listener.local_addr().map_err(|error| error.to_string())?);
    let served = mcp_sansio_std::HttpListener::new(listener).serve(service);
    served.map_err(|error| error.to_string())
}

fn options(place: &Place) -> ServerOptions {
    let options = ServerOptions::new();
    if place.legacy_sse { options.legacy_sse("/sse", "/messages") } else { options }
}

fn block_on(work: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

async fn listen(address: &str) -> Result<(TcpListener, SocketAddr), String> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let local = listener.local_addr().map_err(|error| error.to_string())?;
    Ok((listener, local))
}

async fn run(place: &Place, server: &Server, listener: TcpListener) -> Result<(), String> {
    let service = HttpService::new(server, options(place)).map_err(|error| error.to_string())?;
    HttpListener::new(listener).serve(service, told_to_end()).await;
    Ok(())
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
