//! A server for the public: behind a proxy with TLS, with tokens of an authorization server, any number
//! of nodes that share their sessions through Redis, health checks, and a shutdown that loses no call.
//! Each setting is a variable of the environment; docs/guide/production.md lists them.
#![allow(clippy::print_stderr, reason = "the log of a service is its standard error")]

use std::env;
use std::error::Error;
use std::time::Duration;

use mcp_sansio_redis::{RedisOptions, RedisStore};
use mcp_sansio_tokio::auth::protected_resource::Operation;
use mcp_sansio_tokio::http::{AllowedHosts, Location, SharedOptions};
use mcp_sansio_tokio::machine::seal::Seal;
use mcp_sansio_tokio::{
    Call, Connector, HttpListener, HttpServerOptions, HttpService, JwtVerifier, NoArguments,
    Principal, ProtectedResource, Server,
};
use tokio::net::TcpListener;
use tokio::time::sleep;

/// How long a node answers `/health` with 503 before it stops accepting, so that the balancer sees it.
const DRAIN: Duration = Duration::from_secs(5);
/// How long responses in progress may take after that.
const LINGER: Duration = Duration::from_secs(20);
/// How long a client may take to answer a question of a tool.
const QUESTION: Duration = Duration::from_secs(3600);

type Failure = Box<dyn Error>;

fn tools(server: Server) -> Server {
    server
        .tool("whoami", "Names the user", |call: Call<NoArguments>| {
            call.principal().map_or("nobody", Principal::as_str).to_owned()
        })
        .tool("reset", "Empties the user's data", |_: Call<NoArguments>| "Empty.")
        .tool("report", "Writes a report, which takes two seconds", async |_: Call<NoArguments>| {
            sleep(Duration::from_secs(2)).await;
            "All is well."
        })
}

/// Reads a variable of the environment.
fn variable(name: &str) -> Result<String, Failure> {
    env::var(name).map_err(|error| format!("{name}: {error}").into())
}

/// Reads the key that all nodes share, 64 hexadecimal digits.
fn key(digits: &str) -> Result<[u8; 32], Failure> {
    let mut key = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return Err("MCP_SEAL_KEY: not 64 hexadecimal digits".into());
    }
    for (byte, pair) in key.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair)?, 16)?;
    }
    Ok(key)
}

/// Waits for the signal to stop.
async fn stopped() {
    #[cfg(unix)]
    if let Ok(mut terminate) =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
    {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        return;
    }
    let _ = tokio::signal::ctrl_c().await;
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = variable("MCP_URL")?; // https://mcp.example.com/mcp, as clients know it
    let issuer = variable("MCP_ISSUER")?; // https://auth.example.com
    let node = variable("MCP_NODE")?; // a name that no other node has
    let listener = TcpListener::bind(variable("MCP_LISTEN")?).await?; // 0.0.0.0:8000

    // Tokens: issued by `issuer` for `url`. Each tool may ask for scopes of its own.
    let resource = ProtectedResource::new(&url, [&*issuer])?
        .base_scopes(["use"])?
        .scopes_for(Operation::tool("reset"), ["admin"])?;
    let connector = Connector::new()?;
    let verifier = JwtVerifier::new(&issuer, &url, move |url| connector.fetch(url))?;
    let server = tools(Server::new("production", env!("CARGO_PKG_VERSION")))
        .seal(Seal::new(key(&variable("MCP_SEAL_KEY")?)?), QUESTION)
        .protect(resource, move |check| verifier.check(check));

    // The host of the URL is the only one that a browser may name.
    let host = Location::parse(&url)?.host().to_owned();
    let options = HttpServerOptions::new().hosts(AllowedHosts::new().allow_host(&host)?);
    let store =
        RedisStore::connect(&variable("MCP_REDIS")?, RedisOptions::new().node(&node)).await?;
    let service = HttpService::with_shared_store(&server, options, SharedOptions::new(), store)?
        .health("/health");

    let (draining, name) = (service.clone(), node.clone());
    let shutdown = async move {
        stopped().await;
        eprintln!("{name}: draining");
        draining.set_ready(false);
        sleep(DRAIN).await;
    };
    eprintln!("{node}: listening on {}", listener.local_addr()?);
    HttpListener::new(listener).linger(LINGER).serve(service, shutdown).await;
    eprintln!("{node}: stopped");
    Ok(())
}
