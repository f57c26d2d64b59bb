//! Servers that require tokens of an authorization server in the same process.

use std::error::Error;
use std::io;
use std::time::Duration;

use mcp_sansio_handlers::Server;
use mcp_sansio_oauth::protected_resource::{
    InvalidResource, Operation, ProtectedResource, TokenCheck,
};
use mcp_sansio_tokio::{Connector, JwtVerifier, Proxy};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{AuthorizationServer, Options};

/// The scope required by every request.
pub const BASIC: &str = "mcp:basic";
/// The scope required by changes.
pub const WRITE: &str = "mcp:write";

/// A resource with its own scope, if the server has it.
pub const SCOPED_RESOURCE: &str = "test://scoped-text";
/// The scope required to read [`SCOPED_RESOURCE`].
pub const READ_RESOURCE: &str = "mcp:resource";
/// A template whose resources have their own scope, if the server has it.
pub const SCOPED_TEMPLATE: &str = "test://scoped/{id}/data";
/// The scope required to read a resource of [`SCOPED_TEMPLATE`].
pub const READ_TEMPLATE: &str = "mcp:template";
/// A prompt with its own scope, if the server has it.
pub const SCOPED_PROMPT: &str = "test_scoped_prompt";
/// The scope required to get [`SCOPED_PROMPT`].
pub const GET_PROMPT: &str = "mcp:prompt";

/// Returns options with all scopes.
#[must_use]
pub fn options() -> Options {
    Options::new().scopes([BASIC, WRITE, READ_RESOURCE, READ_TEMPLATE, GET_PROMPT])
}

/// Starts an authorization server on a free loopback port.
///
/// # Errors
///
/// Fails if no port is free, or if the system's random number generator fails.
pub async fn authorization_server(options: Options) -> io::Result<AuthorizationServer> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    AuthorizationServer::start(listener, options)
}

/// An authorization server for use with any runtime. It runs on its own tokio thread until it is
/// dropped.
#[derive(Debug)]
pub struct SeparateIssuer {
    runtime: Runtime,
    authorization_server: AuthorizationServer,
}

impl SeparateIssuer {
    /// Starts the authorization server on a free loopback port.
    ///
    /// # Errors
    ///
    /// Fails if no port or thread is available, or if the system's random number generator fails.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let authorization_server = runtime.block_on(authorization_server(options()))?;
        Ok(Self { runtime, authorization_server })
    }

    /// Returns the issuer identifier.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.authorization_server.issuer()
    }

    /// Makes the server require tokens of this issuer. See [`protect()`].
    ///
    /// # Errors
    ///
    /// See [`protect()`].
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

/// Makes the server at `url` require tokens of `issuer`: the scope [`BASIC`] for everything,
/// [`WRITE`] for the tool `writes`, and one scope each for [`SCOPED_RESOURCE`], [`SCOPED_TEMPLATE`]
/// and [`SCOPED_PROMPT`]. The keys of the issuer are fetched on the current tokio runtime, even if
/// the server runs elsewhere.
///
/// # Errors
///
/// Fails if one of the URLs is invalid, or if TLS cannot be initialized.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn protect(
    server: Server,
    url: &str,
    issuer: &str,
    writes: &str,
) -> Result<Server, Box<dyn Error>> {
    let resource = resource(url, issuer, writes)?;
    // All connections are local, so no proxy is used.
    let connector = Connector::builder().proxy(Proxy::none()).build()?;
    let runtime = Handle::current();
    let verifier = JwtVerifier::new(issuer, url, move |url: String| {
        let fetched = runtime.spawn(connector.fetch(url));
        async { Ok::<_, Box<dyn Error + Send + Sync>>(fetched.await??) }
    })?;
    // Issuer and server use the same clock.
    let verifier = verifier.leeway(Duration::ZERO);
    Ok(server.protect(resource, move |check: TokenCheck| verifier.check(check)))
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
