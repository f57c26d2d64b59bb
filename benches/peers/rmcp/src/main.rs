//! rmcp in the comparison.

mod link;
mod servers;
mod stores;

use std::sync::Arc;

use axum::serve::ListenerExt;
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt};
use servers::{Cached, Documented};
use shape::{Subject, Task};
use tokio::net::TcpStream;
use tokio::runtime::Builder;

fn main() {
    let Subject { variant, task } = Subject::from_args();
    match &*variant {
        "documented" | "pipes" => run(&variant, task, || Documented),
        "cached" | "cached-pipes" | "stored" => {
            let server = Cached::new();
            run(&variant, task, move || server.clone());
        }
        _ => panic!("unknown variant {variant}"),
    }
}

fn run<S, F>(variant: &str, task: Task, server: F)
where
    S: ServerHandler,
    F: Fn() -> S + Send + Sync + 'static,
{
    let one_thread = || Builder::new_current_thread().enable_all().build().expect("a runtime");
    match task {
        Task::Link { work, rounds } => one_thread().block_on(link::run(server(), work, rounds)),
        Task::Pairs(count) => one_thread().block_on(link::idle(server, count)),
        Task::Stdio => one_thread().block_on(async {
            let running = if variant.ends_with("pipes") {
                server().serve(stdio_pipes()).await
            } else {
                server().serve(stdio()).await
            };
            running.expect("opens").waiting().await.expect("serves");
            // Exits even if a read of standard input is still blocked.
            std::process::exit(0);
        }),
        Task::Http { address, .. } => {
            let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
            runtime.block_on(serve_http(&address, variant == "stored", server));
        }
    }
}

async fn serve_http<S, F>(address: &str, stored: bool, server: F)
where
    S: ServerHandler,
    F: Fn() -> S + Send + Sync + 'static,
{
    let mut config = StreamableHttpServerConfig::default();
    let mut sessions = LocalSessionManager::default();
    if stored {
        config.session_store = Some(Arc::new(stores::Sessions::default()));
        sessions = sessions.with_event_store(Arc::new(stores::Events::default()));
    }
    let service = StreamableHttpService::new(move || Ok(server()), Arc::new(sessions), config);
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(address).await.expect("listens");
    axum::serve(listener.tap_io(disable_nagle), router).await.expect("serves");
}

/// Disables Nagle's algorithm, so that a response in several writes does not wait for
/// acknowledgements.
fn disable_nagle(socket: &mut TcpStream) {
    socket.set_nodelay(true).expect("a socket");
}
