//! The client over HTTP on tokio: what moves the bytes of exchanges, and knows no rule of what they
//! carry.

mod connection;
mod connector;
mod dialer;
mod proxy;
mod tls;

pub use connection::{HttpConnection, connect, connect_with, drive_http};
pub use connector::{Connector, ConnectorBuilder};
pub use mcp_sansio_async::http_client::{ConnectorError, FetchError, ResponseBody};
pub use proxy::Proxy;

/// Why there is no connection to a server over HTTP.
pub type ConnectError = mcp_sansio_async::ConnectError<ConnectorError>;

/// Performs the exchanges of a client with a [`Connector`].
pub type TokioExchanger = mcp_sansio_async::http_client::HyperExchanger<Connector>;

/// An exchange of a [`TokioExchanger`].
pub type TokioExchange = mcp_sansio_async::http_client::HyperExchange;
