#[cfg(unix)]
use std::path::PathBuf;

use mcp_sansio_async::http_client;
use mcp_sansio_handlers::{Host, Servers, ServersConfig, ServersError};

use crate::child::AsyncProcess;
use crate::runtime::AsyncRuntime;
use crate::{AnyConnection, ConnectorError, Error, HttpConnection};

/// Performs HTTP exchanges: connection pool, TLS, proxies; HTTP/1.1.
///
/// A `JwtVerifier` fetches the keys of an issuer with it:
///
/// ```
/// # fn verifier() -> Result<(), Box<dyn std::error::Error>> {
/// use mcp_sansio_async_std::{Connector, JwtVerifier};
///
/// let connector = Connector::new()?;
/// let verifier = JwtVerifier::new(
///     "https://auth.example.com",
///     "https://mcp.example.com/mcp",
///     move |url| connector.fetch(url),
/// )?;
/// # Ok(())
/// # }
/// ```
pub type Connector = http_client::Connector<AsyncRuntime>;

/// Configures a [`Connector`].
pub type ConnectorBuilder = http_client::ConnectorBuilder<AsyncRuntime>;

/// Why a connection to a server over HTTP could not be opened.
pub type ConnectError = http_client::ConnectError<ConnectorError>;

/// Performs the exchanges of a client with a [`Connector`].
pub type AsyncExchanger = http_client::ConnectorExchanger<Connector>;

/// Connects to the server at `url` with a new [`Connector`] with default settings. A spawned task
/// drives the connection. For more than one connection, share a connector and use
/// [`connect_with`](crate::connect_with).
///
/// ```no_run
/// use mcp_sansio_async_std::{self as mcp, Host};
///
/// # async fn run() -> Result<(), mcp::Error> {
/// let client = mcp::connect("https://example.com/mcp", &Host::new("demo", "1.0.0")).await?;
/// let report = client.call_tool("forecast", &[("location", "Oslo")]).await?;
/// client.close().await;
/// # let _ = report;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Connect`]: the URL is invalid, or the connection could not be opened within the limits
/// of the connector and [`Timeouts`](mcp_sansio::peer::Timeouts).
pub async fn connect(url: &str, host: &Host) -> Result<HttpConnection, Error> {
    http_client::connect(url, Connector::new, host).await
}

/// Connects to the server on the Unix-domain socket at `path`, at the URL `http://localhost/mcp`. A
/// spawned task drives the connection. For another URL, use [`ConnectorBuilder::unix_socket`] and
/// [`connect_with`](crate::connect_with).
///
/// # Errors
///
/// [`Error::Connect`], as [`connect`].
#[cfg(unix)]
pub async fn connect_unix(path: impl Into<PathBuf>, host: &Host) -> Result<HttpConnection, Error> {
    let connector = || Connector::builder().unix_socket(path).build();
    http_client::connect("http://localhost/mcp", connector, host).await
}

/// Adds the servers of a configuration to `servers`, and starts them all: programs as child
/// processes, and servers on HTTP with one [`Connector`]. Spawned tasks open the connections and keep
/// them open, until [`Servers::close`](crate::Servers::close). A malformed entry, or one
/// whose name could be confused with that of another one, is a server whose state is `Ended`.
///
/// Each of them gets a clone of `host` that [knows its name](Host::for_server).
///
/// ```no_run
/// use std::time::Duration;
///
/// use mcp_sansio_async_std::{self as mcp, AnyConnection, Host, Servers, ServersConfig};
///
/// # async fn run(host: Host) -> Result<(), Box<dyn std::error::Error>> {
/// let text = std::fs::read_to_string("mcp.json")?;
/// let config = ServersConfig::parse(&text, |name| std::env::var(name).ok())?;
/// let servers = Servers::<AnyConnection>::new();
/// mcp::connect_servers(&servers, config, &host)?;
/// for error in servers.ready(smol::Timer::after(Duration::from_secs(10))).await {
///     eprintln!("{error}");
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`ServersError`]: there is a server of this name already. Nothing is started then.
pub fn connect_servers(
    servers: &Servers<AnyConnection>,
    config: ServersConfig,
    host: &Host,
) -> Result<(), ServersError> {
    http_client::connect_servers::<AsyncProcess, Connector, _>(
        servers,
        config,
        host,
        Connector::new,
    )
}
