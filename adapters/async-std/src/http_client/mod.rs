//! The client over HTTP: what moves the bytes of exchanges, and knows no rule of what they carry.

mod connector;
mod dialer;
mod tls;
mod wire;

use mcp_sansio_async::{HttpDriver, http_client};
use mcp_sansio_handlers::{Host, HttpEndpoint};

use crate::{AsyncTimer, Error};

pub use connector::{Connector, ConnectorBuilder};
pub use mcp_sansio_async::http_client::{
    ConnectorError, FetchError, HttpConnection, ResponseBody, connect_with,
};

/// Why there is no connection to a server over HTTP.
pub type ConnectError = mcp_sansio_async::ConnectError<ConnectorError>;

/// Performs the exchanges of a client with a [`Connector`].
pub type AsyncExchanger = http_client::HyperExchanger<Connector>;

/// An exchange of an [`AsyncExchanger`].
pub type AsyncExchange = http_client::HyperExchange;

/// A driver of `endpoint` over the exchanges of `connector`, to await or to spawn.
#[must_use]
pub fn drive_http<E: HttpEndpoint>(
    endpoint: E,
    connector: Connector,
) -> HttpDriver<E, AsyncExchanger, AsyncTimer> {
    HttpDriver::new(endpoint, AsyncExchanger::new(connector), AsyncTimer::new())
}

/// Opens a connection to the server at `url`, driven by a task of its own: with a [`Connector`] of
/// its own as [`Connector::new`] makes it. For more than one connection have a connector for all of
/// them, and [`connect_with`].
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
/// [`Error::Connect`]: the URL is none, or the connection could not be opened within the limits of
/// the connector and [`Timeouts`](mcp_sansio::peer::Timeouts).
pub async fn connect(url: &str, host: &Host) -> Result<HttpConnection, Error> {
    http_client::connect(url, Connector::new, host).await
}
