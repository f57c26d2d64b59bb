//! The client over HTTP on tokio: what moves the bytes of exchanges, and knows no rule of what they
//! carry.

mod connector;
mod dialer;
mod proxy;
mod tls;

use mcp_sansio_async::{HttpDriver, http_client};
use mcp_sansio_handlers::{Host, HttpEndpoint};

use crate::{Error, TokioTimer};

pub use connector::{Connector, ConnectorBuilder};
pub use mcp_sansio_async::http_client::{
    ConnectorError, FetchError, HttpConnection, ResponseBody, connect_with,
};
pub use proxy::Proxy;

/// Why there is no connection to a server over HTTP.
pub type ConnectError = mcp_sansio_async::ConnectError<ConnectorError>;

/// Performs the exchanges of a client with a [`Connector`].
pub type TokioExchanger = http_client::HyperExchanger<Connector>;

/// An exchange of a [`TokioExchanger`].
pub type TokioExchange = http_client::HyperExchange;

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
    http_client::connect(url, Connector::new, host).await
}
