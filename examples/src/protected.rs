//! Servers that want a token, of an authorization server in the same process.

use std::io;
use std::time::Duration;

use mcp_sansio::auth::TokenCheck;
use mcp_sansio::auth::protected_resource::{InvalidResource, Operation, ProtectedResource};
use mcp_sansio::handler::Server;
use mcp_sansio_auth::JwtVerifier;
use mcp_sansio_tokio::{Connector, Proxy, unix_time};
use tokio::net::TcpListener;

use crate::authorization_server::{AuthorizationServer, Options};
use crate::browser::Browser;

/// The scope that every request needs.
pub const BASIC: &str = "mcp:basic";
/// The scope that changes need.
pub const WRITE: &str = "mcp:write";

/// What to give, and for what: both scopes there are.
#[must_use]
pub fn options() -> Options {
    Options::new().scopes([BASIC, WRITE])
}

/// Starts an authorization server on a free port of this computer.
///
/// # Errors
///
/// The system's fault: there is no port, or no entropy.
pub async fn authorization_server(options: Options) -> io::Result<AuthorizationServer> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    AuthorizationServer::start(listener, options)
}

/// Has the server, which is at `url`, want tokens of `issuer`: with [`BASIC`] for everything, and
/// with [`WRITE`] for the tool `writes`.
///
/// # Errors
///
/// The caller's fault: one of the URLs is none. The system's: there is no TLS.
pub fn protect(
    server: Server,
    url: &str,
    issuer: &str,
    writes: &str,
) -> Result<Server, Box<dyn std::error::Error>> {
    let resource = resource(url, issuer, writes)?;
    // Nothing here leaves the computer.
    let browser = Browser::new(Connector::builder().proxy(Proxy::none()).build()?);
    let verifier = JwtVerifier::new(issuer, url, move |url: String| {
        let browser = browser.clone();
        async move { browser.fetch(&url).await }
    })?;
    // The clock is the same one.
    let verifier = verifier.leeway(Duration::ZERO);
    Ok(server.protect(resource, move |check: TokenCheck| verifier.check(check), unix_time))
}

fn resource(url: &str, issuer: &str, writes: &str) -> Result<ProtectedResource, InvalidResource> {
    ProtectedResource::new(url, [issuer])?
        .base_scopes([BASIC])?
        .scopes_for(Operation::tool(writes), [WRITE])?
        .scopes_supported([BASIC, WRITE])
}
