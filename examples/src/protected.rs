//! Servers that want a token, of an authorization server in the same process.

use std::error::Error;
use std::io;
use std::time::Duration;

use mcp_sansio_auth::JwtVerifier;
use mcp_sansio_handlers::Server;
use mcp_sansio_oauth::TokenCheck;
use mcp_sansio_oauth::protected_resource::{InvalidResource, Operation, ProtectedResource};
use mcp_sansio_tokio::{Connector, Proxy, unix_time};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::authorization_server::{AuthorizationServer, Options};

/// The scope that every request needs.
pub const BASIC: &str = "mcp:basic";
/// The scope that changes need.
pub const WRITE: &str = "mcp:write";

/// A resource with a scope of its own, where the server has it.
pub const SCOPED_RESOURCE: &str = "test://scoped-text";
/// The scope that reading [`SCOPED_RESOURCE`] needs.
pub const READ_RESOURCE: &str = "mcp:resource";
/// A template whose resources have a scope of their own, where the server has it.
pub const SCOPED_TEMPLATE: &str = "test://scoped/{id}/data";
/// The scope that reading a resource of [`SCOPED_TEMPLATE`] needs.
pub const READ_TEMPLATE: &str = "mcp:template";
/// A prompt with a scope of its own, where the server has it.
pub const SCOPED_PROMPT: &str = "test_scoped_prompt";
/// The scope that getting [`SCOPED_PROMPT`] needs.
pub const GET_PROMPT: &str = "mcp:prompt";

/// What to give, and for what: all scopes there are.
#[must_use]
pub fn options() -> Options {
    Options::new().scopes([BASIC, WRITE, READ_RESOURCE, READ_TEMPLATE, GET_PROMPT])
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

/// An authorization server beside a server on whichever runtime: it has a thread of tokio for itself,
/// until it is dropped.
#[derive(Debug)]
pub struct SeparateIssuer {
    runtime: Runtime,
    authorization_server: AuthorizationServer,
}

impl SeparateIssuer {
    /// Starts it, on a free port of this computer.
    ///
    /// # Errors
    ///
    /// The system's fault: there is no port, no thread, or no entropy.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let authorization_server = runtime.block_on(authorization_server(options()))?;
        Ok(Self { runtime, authorization_server })
    }

    /// Who issues the tokens.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.authorization_server.issuer()
    }

    /// Has the server want tokens of this one: see [`protect()`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn protect(
        &self,
        server: Server,
        url: &str,
        writes: &str,
    ) -> Result<Server, Box<dyn Error>> {
        let _inside = self.runtime.enter();
        protect(server, url, self.issuer(), writes)
    }
}

/// Has the server, which is at `url`, want tokens of `issuer`: with [`BASIC`] for everything, with
/// [`WRITE`] for the tool `writes`, and with a scope each for [`SCOPED_RESOURCE`],
/// [`SCOPED_TEMPLATE`] and [`SCOPED_PROMPT`]. The keys of the issuer are fetched on the tokio runtime that
/// this is called in, wherever the server is.
///
/// # Errors
///
/// The caller's fault: one of the URLs is none. The system's: there is no TLS.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub fn protect(
    server: Server,
    url: &str,
    issuer: &str,
    writes: &str,
) -> Result<Server, Box<dyn Error>> {
    let resource = resource(url, issuer, writes)?;
    // Nothing here leaves the computer.
    let connector = Connector::builder().proxy(Proxy::none()).build()?;
    let runtime = Handle::current();
    let verifier = JwtVerifier::new(issuer, url, move |url: String| {
        let fetched = runtime.spawn(connector.fetch(url));
        async { Ok::<_, Box<dyn Error + Send + Sync>>(fetched.await??) }
    })?;
    // The clock is the same one.
    let verifier = verifier.leeway(Duration::ZERO);
    Ok(server.protect(resource, move |check: TokenCheck| verifier.check(check), unix_time))
}

fn resource(url: &str, issuer: &str, writes: &str) -> Result<ProtectedResource, InvalidResource> {
    ProtectedResource::new(url, [issuer])?
        .base_scopes([BASIC])?
        .scopes_for(Operation::tool(writes), [WRITE])?
        .scopes_for(Operation::resource(SCOPED_RESOURCE), [READ_RESOURCE])?
        .scopes_for(Operation::template(SCOPED_TEMPLATE), [READ_TEMPLATE])?
        .scopes_for(Operation::prompt(SCOPED_PROMPT), [GET_PROMPT])?
        .scopes_supported([BASIC, WRITE])
}
