//! HTTP servers.

use std::future::pending;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
#[cfg(unix)]
use std::path::Path;
use std::time::Duration;

use mcp_sansio::InvalidValue;
use mcp_sansio::http::{HttpServerOptions, SharedOptions};
#[cfg(unix)]
use mcp_sansio_async::http_server::UnixSocket;
use mcp_sansio_handlers::{Server, ServerCard};
use mcp_sansio_redis::{RedisOptions, RedisStore};

use crate::runtime::{Place, Runtime};
use authorization_server::protected::SeparateIssuer;

/// The path of health checks on nodes with a store.
const HEALTH: &str = "/health";

/// How long such a node serves requests after the signal to stop, while health checks answer 503.
/// 2 s: longer than load balancers take to notice.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Serves on `address` until the process is told to stop, and announces the address once it
/// listens. With authorization, the tool `writes` requires an additional scope.
///
/// # Errors
///
/// Returns a description of the failure.
pub fn serve(place: &Place, server: Server, address: &str, writes: &str) -> Result<(), String> {
    let listener = TcpListener::bind(address);
    let listener = listener.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let local = listener.local_addr().map_err(|error| error.to_string())?;
    let server = server.card(card(local).map_err(|error| error.to_string())?);
    if !place.auth {
        announce(local);
        return run(place, &server, Socket::Tcp(listener));
    }
    let separate_issuer = SeparateIssuer::start().map_err(|error| error.to_string())?;
    let url = format!("http://{local}/mcp");
    let server =
        separate_issuer.protect(server, &url, writes).map_err(|error| error.to_string())?;
    announce(local);
    // There is nothing left to report a failure to.
    let _ = writeln!(
        std::io::stderr(),
        "sign in at {}: try `mcp-inspect tools --url {url} --sign-in`",
        separate_issuer.issuer()
    );
    run(place, &server, Socket::Tcp(listener))
}

/// Returns the card of the server at `address`, a draft.
fn card(address: SocketAddr) -> Result<ServerCard, InvalidValue> {
    let version = env!("CARGO_PKG_VERSION");
    let card = ServerCard::new("example.mcp-sansio/demo", version, "An example of mcp-sansio")?;
    card.remote(&format!("http://{address}/mcp"))
}

/// Serves on the Unix-domain socket at `path` until the process is told to stop, and announces it
/// once it listens.
///
/// # Errors
///
/// Returns a description of the failure.
#[cfg(unix)]
pub fn serve_unix(place: &Place, server: &Server, path: &Path) -> Result<(), String> {
    let socket = UnixSocket::bind(path).map_err(|error| error.to_string())?;
    // There is nothing left to report a failure to.
    let _ = writeln!(std::io::stderr(), "listening on http://localhost/mcp at {}", path.display());
    run(place, server, Socket::Unix(socket))
}

/// A bound socket.
enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixSocket),
}

/// Announces that a server listens at `address`. Parent processes wait for this line.
pub fn announce(address: SocketAddr) {
    // There is nothing left to report a failure to.
    let _ = writeln!(std::io::stderr(), "listening on http://{address}/mcp");
}

fn run(place: &Place, server: &Server, socket: Socket) -> Result<(), String> {
    let mut options = HttpServerOptions::new();
    if place.legacy_sse {
        options = options.legacy_sse("/sse", "/messages");
    }
    match place.runtime {
        Runtime::Tokio => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            let runtime = runtime.map_err(|error| error.to_string())?;
            runtime.block_on(run_on_tokio(place, server, options, socket))
        }
        runtime @ (Runtime::Smol | Runtime::AsyncStd) => runtime
            .block_on(run_on_async_std(place, server, options, socket))
            .map_err(|error| error.to_string())?,
        Runtime::Std => run_without_runtime(place, server, options, socket),
    }
}

async fn run_on_tokio(
    place: &Place,
    server: &Server,
    options: HttpServerOptions,
    socket: Socket,
) -> Result<(), String> {
    use mcp_sansio_tokio::{HttpListener, HttpService};

    let service = match connect_store(place).await? {
        Some(store) => HttpService::with_shared_store(server, options, SharedOptions::new(), store)
            .map(|service| service.health(HEALTH)),
        None => HttpService::new(server, options),
    };
    let service = service.map_err(|error| error.to_string())?;
    let listener = match socket {
        Socket::Tcp(listener) => HttpListener::try_from(listener),
        #[cfg(unix)]
        Socket::Unix(socket) => HttpListener::try_from(socket),
    };
    let listener = listener.map_err(|error| error.to_string())?;
    let node = place.store.as_ref().map(|_| service.clone());
    let shutdown = async {
        shutdown_signal().await;
        if let Some(node) = node {
            node.set_ready(false);
            tokio::time::sleep(DRAIN_TIME).await;
        }
    };
    listener.serve(service, shutdown).await;
    Ok(())
}

/// Serves on the current runtime, which does not handle signals: a signal ends the process
/// immediately.
async fn run_on_async_std(
    place: &Place,
    server: &Server,
    options: HttpServerOptions,
    socket: Socket,
) -> Result<(), String> {
    use mcp_sansio_async_std::{HttpListener, HttpService};

    let service = match connect_store(place).await? {
        Some(store) => HttpService::with_shared_store(server, options, SharedOptions::new(), store)
            .map(|service| service.health(HEALTH)),
        None => HttpService::new(server, options),
    };
    let service = service.map_err(|error| error.to_string())?;
    let listener = match socket {
        Socket::Tcp(listener) => HttpListener::try_from(listener),
        #[cfg(unix)]
        Socket::Unix(socket) => HttpListener::try_from(socket),
    };
    let listener = listener.map_err(|error| error.to_string())?;
    listener.serve(service, pending()).await;
    Ok(())
}

/// Serves without a runtime. A signal ends the process immediately.
fn run_without_runtime(
    place: &Place,
    server: &Server,
    options: HttpServerOptions,
    socket: Socket,
) -> Result<(), String> {
    use mcp_sansio_std::{HttpListener, HttpService};

    let store =
        Runtime::Std.block_on(connect_store(place)).map_err(|error| error.to_string())??;
    let service = match store {
        Some(store) => HttpService::with_shared_store(server, options, SharedOptions::new(), store)
            .map(|service| service.health(HEALTH)),
        None => HttpService::new(server, options),
    };
    let service = service.map_err(|error| error.to_string())?;
    let listener = match socket {
        Socket::Tcp(listener) => HttpListener::try_from(listener),
        #[cfg(unix)]
        Socket::Unix(socket) => HttpListener::try_from(socket),
    };
    let listener = listener.map_err(|error| error.to_string())?;
    mcp_sansio_std::block_on(listener.serve(service, pending()));
    Ok(())
}

/// Connects to the store through which nodes share their sessions, if there is one.
async fn connect_store(place: &Place) -> Result<Option<RedisStore>, String> {
    let Some(url) = &place.store else { return Ok(None) };
    let mut options = RedisOptions::new();
    options.node.clone_from(&place.node);
    RedisStore::connect(url, options).await.map(Some).map_err(|error| error.to_string())
}

/// Completes when the process is told to stop.
async fn shutdown_signal() {
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let terminated = async {
            match signal(SignalKind::terminate()) {
                Ok(mut terminate) => drop(terminate.recv().await),
                Err(_) => pending().await,
            }
        };
        tokio::select! {
            () = terminated => {}
            () = interrupted => {}
        }
    }
    #[cfg(not(unix))]
    interrupted.await;
}
