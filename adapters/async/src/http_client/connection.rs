use std::ops::Deref;

use mcp_sansio::http::{HttpClientOptions, Location};
use mcp_sansio_handlers::endpoint::HttpEndpoint;
use mcp_sansio_handlers::{Client, Host};

use super::{Connect, ConnectError, ConnectorError, ConnectorExchanger, HttpDriver, LastFailure};
use crate::child::any::{AnyConnection, Connection, Shutdown};
use crate::error::Error;
use crate::task::{self, Task};
use crate::{Runtime, seed};

/// Connects to the server at `url` with the connector that `connector` returns. A spawned task
/// drives the connection.
///
/// # Errors
///
/// [`Error::Connect`]: the URL is invalid, or the connection could not be opened within the limits
/// of the connector and [`Timeouts`](mcp_sansio::peer::Timeouts).
///
/// # Panics
///
/// Where [`Runtime::current`] does.
pub async fn connect<C: Connect>(
    url: &str,
    connector: impl FnOnce() -> Result<C, ConnectorError>,
    host: &Host,
) -> Result<HttpConnection, Error> {
    let location = Location::parse(url).map_err(|error| Box::new(error.into()))?;
    let connector = connector().map_err(|error| Box::new(ConnectError::Connector(error)))?;
    connect_with(HttpClientOptions::new(location), &connector, host).await
}

/// Connects with `connector`. A spawned task drives the connection.
///
/// With the feature `auth`, a host with an `Authorization` obtains tokens if the server requires
/// one; this may wait for a user to sign in.
///
/// The connector caches the era of the server, so that later connections to the same origin open
/// faster.
///
/// # Errors
///
/// [`Error::Connect`]: the connection could not be opened within the limits of the connector and
/// [`Timeouts`](mcp_sansio::peer::Timeouts).
///
/// # Panics
///
/// Where [`Runtime::current`] does.
pub async fn connect_with<C: Connect>(
    options: HttpClientOptions,
    connector: &C,
    host: &Host,
) -> Result<HttpConnection, Error> {
    let url = options.url().clone();
    let era_cache = connector.era_cache();
    let remembered = era_cache.get(url.origin()).map(|era| host.clone().known_era(era));
    let host = remembered.as_ref().unwrap_or(host);
    #[cfg(feature = "auth")]
    let host = &mcp_sansio_auth::with_system_support(host)
        .map_err(|error| Box::new(ConnectError::Entropy(error)))?;
    let runtime = C::Runtime::current();
    let (client, mut endpoint) = host.connect_http(options, seed(), runtime.now());
    endpoint.set_spawner(C::Runtime::spawn_blocking);
    let exchanger = ConnectorExchanger::new(connector.clone());
    let last_failure = exchanger.last_failure_handle();
    let driver = task::spawn(&runtime, HttpDriver::new(endpoint, exchanger, runtime.timer()));
    match client.opened().await {
        Ok(session) => {
            era_cache.insert(url.origin(), session.revision.era());
            Ok(HttpConnection { client, driver, last_failure })
        }
        Err(reason) => {
            // If the server has changed, the next connection probes it again.
            era_cache.remove(url.origin());
            Err(Box::new(ConnectError::from_close_reason(&url, reason, last_failure.get())).into())
        }
    }
}

/// Creates a driver of `endpoint` over the exchanges of `connector`, to await or to spawn on the
/// runtime of the connector.
///
/// # Panics
///
/// Where [`Runtime::current`] does.
#[must_use]
pub fn drive_http<E: HttpEndpoint, C: Connect>(
    mut endpoint: E,
    connector: C,
) -> HttpDriver<E, ConnectorExchanger<C>, <C::Runtime as Runtime>::Timer> {
    endpoint.set_spawner(C::Runtime::spawn_blocking);
    let timer = C::Runtime::current().timer();
    HttpDriver::new(endpoint, ConnectorExchanger::new(connector), timer)
}

/// A client of a server over HTTP. Derefs to the [`Client`].
///
/// [`close`](Self::close) closes it gracefully. If it is dropped, the connection also closes
/// gracefully once the last handle and call are dropped, as long as the runtime keeps running.
#[derive(Debug)]
pub struct HttpConnection {
    client: Client,
    driver: Task<()>,
    last_failure: LastFailure,
}

impl HttpConnection {
    /// Returns the error of the last failed exchange, or `None`. Errors of calls say less: only
    /// that an exchange was not sent, or broke.
    #[must_use]
    pub fn last_failure(&self) -> Option<ConnectorError> {
        self.last_failure.get()
    }

    /// Closes the connection. Pending calls end, and the server is notified where the protocol
    /// requires it, for at most
    /// [`ClientLimits::closing_wait`](mcp_sansio::http::ClientLimits::closing_wait).
    pub async fn close(self) {
        let Self { client, driver, .. } = self;
        client.close();
        // A driver that panicked has also closed the connection.
        let _ended = driver.await;
    }
}

impl Deref for HttpConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl From<HttpConnection> for AnyConnection {
    fn from(connection: HttpConnection) -> Self {
        Self::new(connection)
    }
}

impl Connection for HttpConnection {
    fn shutdown(self: Box<Self>) -> Shutdown {
        Box::pin(async {
            self.close().await;
            Ok(())
        })
    }
}
