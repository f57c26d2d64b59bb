//! The client over HTTP on tokio: transports the bytes of exchanges, independent of the protocol.

use std::io;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use mcp_sansio_async::http_client::cause::system;
use mcp_sansio_async::http_client::{self, Dial, DialAddress};
use mcp_sansio_async::network::HyperSocket;
use mcp_sansio_handlers::{Host, Servers, ServersConfig, ServersError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use crate::child::TokioProcess;
use crate::runtime::TokioRuntime;
use crate::{AnyConnection, ConnectorError, Error, HttpConnection};

/// A peer that disappeared is probed after this period of silence,
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(30);
/// then at this interval,
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// this many times: a dead connection is detected after a minute.
const KEEP_ALIVE_RETRIES: u32 = 3;

/// Performs HTTP exchanges: connection pool, TLS, proxies; HTTP/1.1, and HTTP/2 with servers that
/// negotiate it.
///
/// A `JwtVerifier` fetches the keys of an issuer with it:
///
/// ```
/// # fn verifier() -> Result<(), Box<dyn std::error::Error>> {
/// use mcp_sansio_tokio::{Connector, JwtVerifier};
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
pub type Connector = http_client::Connector<TokioRuntime>;

/// Configures a [`Connector`].
pub type ConnectorBuilder = http_client::ConnectorBuilder<TokioRuntime>;

/// Why a connection to a server over HTTP could not be opened.
pub type ConnectError = http_client::ConnectError<ConnectorError>;

/// Performs the exchanges of a client with a [`Connector`].
pub type TokioExchanger = http_client::ConnectorExchanger<Connector>;

/// Connects to the server at `url` with a new [`Connector`] with default settings. A spawned task
/// drives the connection. For more than one connection, share a connector and use
/// [`connect_with`](crate::connect_with).
///
/// ```no_run
/// use mcp_sansio_tokio::{self as mcp, Host};
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
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
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
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
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
/// use mcp_sansio_tokio::{self as mcp, AnyConnection, Host, Servers, ServersConfig};
///
/// # async fn run(host: Host) -> Result<(), Box<dyn std::error::Error>> {
/// let text = std::fs::read_to_string("mcp.json")?;
/// let config = ServersConfig::parse(&text, |name| std::env::var(name).ok())?;
/// let servers = Servers::<AnyConnection>::new();
/// mcp::connect_servers(&servers, config, &host)?;
/// for error in servers.ready(tokio::time::sleep(Duration::from_secs(10))).await {
///     eprintln!("{error}");
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`ServersError`]: there is a server of this name already. Nothing is started then.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
pub fn connect_servers(
    servers: &Servers<AnyConnection>,
    config: ServersConfig,
    host: &Host,
) -> Result<(), ServersError> {
    http_client::connect_servers::<TokioProcess, Connector, _>(
        servers,
        config,
        host,
        Connector::new,
    )
}

impl Dial for TokioRuntime {
    type Stream = HyperSocket;

    async fn connect(to: DialAddress<'_>, time: Duration) -> io::Result<HyperSocket> {
        let to = match to {
            DialAddress::Tcp(uri) => uri,
            #[cfg(unix)]
            DialAddress::Unix(path) => {
                return Ok(HyperSocket::new(TokioIo::new(UnixStream::connect(path).await?)));
            }
        };
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // Each write is a complete message, or the end of one.
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEP_ALIVE_AFTER));
        tcp.set_keepalive_interval(Some(KEEP_ALIVE_INTERVAL));
        tcp.set_keepalive_retries(Some(KEEP_ALIVE_RETRIES));
        // Shared among a name's addresses: a silent address leaves time for the others.
        tcp.set_connect_timeout(Some(time));
        let socket = tcp.call(to.clone()).await.map_err(|error| system(&error))?;
        Ok(HyperSocket::new(socket))
    }

    async fn secure(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        stream: HyperSocket,
    ) -> io::Result<(HyperSocket, Option<Vec<u8>>)> {
        let stream = TlsConnector::from(config).connect(name, TokioIo::new(stream)).await?;
        let protocol = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        Ok((HyperSocket::new(TokioIo::new(stream)), protocol))
    }
}
