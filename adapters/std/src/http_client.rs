//! The client over HTTP: the blocking version of that of `mcp_sansio_async`.

use std::ops::Deref;
#[cfg(unix)]
use std::path::PathBuf;

use mcp_sansio::http::HttpClientOptions;
use mcp_sansio_async::http_client;
use mcp_sansio_handlers::{Client, Host, ServerConnection, Servers, ServersConfig, ServersError};

use crate::child::AsyncProcess;
use crate::runtime::ThreadRuntime;
use crate::{AnyConnection, ConnectorError, Error, block_on, seed};

/// Performs HTTP exchanges: connection pool, TLS, proxies; HTTP/1.1. Each connection has a thread.
pub type Connector = http_client::Connector<ThreadRuntime>;

/// Configures a [`Connector`].
pub type ConnectorBuilder = http_client::ConnectorBuilder<ThreadRuntime>;

/// Why a connection to a server over HTTP could not be opened.
pub type ConnectError = http_client::ConnectError<ConnectorError>;

/// Connects to the server at `url` with a new [`Connector`] with default settings. A thread drives
/// the connection. Waits until it is open. For more than one connection, share a connector and use
/// [`connect_with`].
///
/// ```no_run
/// use mcp_sansio_std::{self as mcp, Host, Wait};
///
/// # fn run() -> Result<(), mcp::Error> {
/// let client = mcp::connect("https://example.com/mcp", &Host::new("demo", "1.0.0"))?;
/// let report = client.call_tool("forecast", &[("location", "Oslo")]).wait()?;
/// client.close();
/// # let _ = report;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Connect`]: the URL is invalid, or the connection could not be opened within the limits
/// of the connector and [`Timeouts`](mcp_sansio::peer::Timeouts).
pub fn connect(url: &str, host: &Host) -> Result<HttpConnection, Error> {
    block_on(http_client::connect(url, Connector::new, host)).map(HttpConnection::new)
}

/// Connects to the server on the Unix-domain socket at `path`, at the URL `http://localhost/mcp`. A
/// thread drives the connection. Waits until it is open. For another URL, use
/// [`ConnectorBuilder::unix_socket`] and [`connect_with`].
///
/// # Errors
///
/// [`Error::Connect`], as [`connect`].
#[cfg(unix)]
pub fn connect_unix(path: impl Into<PathBuf>, host: &Host) -> Result<HttpConnection, Error> {
    let connector = || Connector::builder().unix_socket(path).build();
    let connected = http_client::connect("http://localhost/mcp", connector, host);
    block_on(connected).map(HttpConnection::new)
}

/// Connects with `connector`. A thread drives the connection. Waits until it is open.
///
#[cfg_attr(
    feature = "auth",
    doc = "A host with an [`Authorization`](crate::Authorization) obtains tokens if the server \
           requires one; this may wait for a user to sign in. Functions of the application that \
           block meanwhile need their own thread, like any blocking handler.\n\n"
)]
/// # Errors
///
/// [`Error::Connect`]: the connection could not be opened within the limits of the connector and
/// [`Timeouts`](mcp_sansio::peer::Timeouts).
pub fn connect_with(
    options: HttpClientOptions,
    connector: &Connector,
    host: &Host,
) -> Result<HttpConnection, Error> {
    block_on(mcp_sansio_async::names::connect_with(options, connector, host))
        .map(HttpConnection::new)
}

/// Adds the servers of a configuration to `servers`, and starts them all: programs as child
/// processes, and servers on HTTP with one [`Connector`]. Threads open the connections and keep
/// them open, until [`Servers::close`](crate::Servers::close). A malformed entry, or one
/// whose name could be confused with that of another one, is a server whose state is `Ended`.
///
/// Each of them gets a clone of `host` that [knows its name](Host::for_server).
///
/// ```no_run
/// use std::time::Duration;
///
/// use mcp_sansio_std::{self as mcp, AnyConnection, Host, Servers, ServersConfig, block_on, sleep};
///
/// # fn run(host: Host) -> Result<(), Box<dyn std::error::Error>> {
/// let text = std::fs::read_to_string("mcp.json")?;
/// let config = ServersConfig::parse(&text, |name| std::env::var(name).ok())?;
/// let servers = Servers::<AnyConnection>::new();
/// mcp::connect_servers(&servers, config, &host)?;
/// for error in block_on(servers.ready(sleep(Duration::from_secs(10)))) {
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

/// A client of a server over HTTP. Derefs to the [`Client`]; [`Wait`](crate::Wait) waits for its
/// calls.
///
/// [`close`](Self::close) closes it gracefully. Dropping it closes the connection without waiting:
/// pending calls end.
#[derive(Debug)]
pub struct HttpConnection {
    connection: mcp_sansio_async::names::HttpConnection,
    closes: CloseOnDrop,
}

/// `None` if the connection is to stay open.
#[derive(Debug)]
struct CloseOnDrop(Option<Client>);

impl HttpConnection {
    fn new(connection: mcp_sansio_async::names::HttpConnection) -> Self {
        let closes = CloseOnDrop(Some(connection.clone()));
        Self { connection, closes }
    }

    /// Returns the error of the last failed exchange, or `None`. Errors of calls say less: only
    /// that an exchange was not sent, or broke.
    #[must_use]
    pub fn last_failure(&self) -> Option<ConnectorError> {
        self.connection.last_failure()
    }

    /// Closes the connection and waits for its end. Pending calls end, and the server is notified
    /// where the protocol requires it, for at most
    /// [`ClientLimits::closing_wait`](mcp_sansio::http::ClientLimits::closing_wait).
    ///
    /// Calling it in a handler of the connection would deadlock.
    pub fn close(self) {
        block_on(self.connection.close());
    }

    /// The same as [`close`](Self::close), under the name that every kind of connection has.
    pub fn shutdown(self) {
        self.close();
    }
}

impl Deref for HttpConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.connection
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.iter().for_each(Client::close);
    }
}

impl ServerConnection for HttpConnection {
    fn client(&self) -> &Client {
        self
    }

    fn seed() -> u64 {
        seed()
    }

    fn is_permanent(error: &(dyn std::error::Error + 'static)) -> bool {
        Error::is_permanent_in(error)
    }
}

impl From<HttpConnection> for AnyConnection {
    fn from(connection: HttpConnection) -> Self {
        let HttpConnection { connection, mut closes } = connection;
        closes.0 = None;
        connection.into()
    }
}

#[cfg(all(test, feature = "http-server"))]
mod tests {
    use mcp_sansio::Era;
    use mcp_sansio::http::{HttpServerOptions, Location};
    use mcp_sansio_async::http_client::Connect;
    use mcp_sansio_handlers::Server;

    use super::*;
    use crate::{BackgroundListener, HttpListener, HttpService, Proxy};

    #[test]
    fn a_connector_caches_the_era_of_a_server() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let service =
            HttpService::new(&Server::new("test", "1"), HttpServerOptions::new()).unwrap();
        let listener = HttpListener::try_from(listener).unwrap();
        let serving = BackgroundListener::spawn(listener, service).unwrap();
        let url = Location::parse(&format!("http://{}/mcp", serving.address().unwrap())).unwrap();
        let connector = Connector::builder().proxy(Proxy::none()).build().unwrap();
        assert_eq!(connector.era_cache().get(url.origin()), None);
        let options = HttpClientOptions::new(url.clone());
        connect_with(options, &connector, &Host::new("test", "1")).unwrap().close();
        assert_eq!(connector.era_cache().get(url.origin()), Some(Era::Modern));
    }
}
