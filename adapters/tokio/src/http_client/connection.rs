use std::ops::Deref;

use mcp_sansio::handler::{Client, Host, HttpEndpoint};
use mcp_sansio::http::{ClientOptions, Location};
use mcp_sansio_async::HttpDriver;
use mcp_sansio_async::http_client::Trouble;
use tokio::task::JoinHandle;

use crate::{
    ConnectError, Connector, ConnectorError, Error, TokioExchanger, TokioTimer, now, seed,
};

/// A driver of `endpoint` over the exchanges of `connector`, to await or to spawn.
#[must_use]
pub fn drive_http<E: HttpEndpoint>(
    endpoint: E,
    connector: Connector,
) -> HttpDriver<E, TokioExchanger, TokioTimer> {
    HttpDriver::new(endpoint, TokioExchanger::new(connector), TokioTimer::new())
}

/// Opens a connection to the server at `url`, driven by a task of its own: with a [`Connector`] of
/// its own as [`Connector::new`] makes it. For more than one connection have a connector for all of
/// them, and [`connect_with`].
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
/// [`Error::Connect`]: the URL is none, or the connection could not be opened within the limits of
/// the connector and [`Timeouts`](mcp_sansio::peer::Timeouts).
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
pub async fn connect(url: &str, host: &Host) -> Result<HttpConnection, Error> {
    let location = Location::parse(url).map_err(|error| Box::new(error.into()))?;
    let connector = Connector::new().map_err(|error| Box::new(ConnectError::Connector(error)))?;
    connect_with(ClientOptions::new(location), &connector, host).await
}

/// Opens a connection by `connector`, driven by a task of its own.
///
#[cfg_attr(
    feature = "auth",
    doc = "A host with an [`Authorization`](crate::Authorization) gets tokens where the server wants \
           one: this waits for a user who has to sign in.\n\n"
)]
/// The connector remembers of which era the server turned out to be, so that later connections to
/// the same origin are open sooner.
///
/// # Errors
///
/// [`Error::Connect`]: the connection could not be opened within the limits of the connector and
/// [`Timeouts`](mcp_sansio::peer::Timeouts).
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
pub async fn connect_with(
    options: ClientOptions,
    connector: &Connector,
    host: &Host,
) -> Result<HttpConnection, Error> {
    let url = options.url().clone();
    let eras = connector.eras();
    let remembered = eras.of(url.origin()).map(|era| host.clone().known_era(era));
    let host = remembered.as_ref().unwrap_or(host);
    #[cfg(feature = "auth")]
    let host = &crate::equip(host).map_err(|error| Box::new(ConnectError::Entropy(error)))?;
    let (client, endpoint) = host.connect_http(options, seed(), now());
    let exchanger = TokioExchanger::new(connector.clone());
    let trouble = exchanger.trouble();
    let driver = tokio::spawn(HttpDriver::new(endpoint, exchanger, TokioTimer::new()));
    match client.opened().await {
        Ok(session) => {
            eras.learn(url.origin(), session.revision.era());
            Ok(HttpConnection { client, driver, trouble })
        }
        Err(reason) => {
            // Should the server have changed, the next connection finds out how.
            eras.forget(url.origin());
            Err(Box::new(ConnectError::of_opening(&url, reason, trouble.last())).into())
        }
    }
}

/// A client of a server over HTTP. It derefs to the [`Client`].
///
/// [`close`](Self::close) ends it in good order. Dropped, it does so as well when the last handle
/// and call is gone, as long as the runtime goes on.
#[derive(Debug)]
pub struct HttpConnection {
    client: Client,
    driver: JoinHandle<()>,
    trouble: Trouble,
}

impl HttpConnection {
    /// Why the last exchange that failed did; `None` if none has. Calls say less: that an exchange
    /// was not sent, or broke.
    #[must_use]
    pub fn last_failure(&self) -> Option<ConnectorError> {
        self.trouble.last()
    }

    /// Closes the connection. Calls under way end, and the server is told where it has to know, for
    /// which it has as long as
    /// [`ClientLimits::closing_wait`](mcp_sansio::http::ClientLimits::closing_wait).
    pub async fn close(self) {
        let Self { client, driver, .. } = self;
        client.close();
        // A driver that panicked has closed the connection, too.
        let _ended = driver.await;
    }
}

impl Deref for HttpConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
