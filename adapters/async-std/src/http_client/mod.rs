//! The client over HTTP: what moves the bytes of exchanges, and knows no rule of what they carry.

mod connection;
mod connector;
mod dialer;
mod tls;
mod wire;

pub use connection::{HttpConnection, connect, connect_with, drive_http};
pub use connector::{Connector, ConnectorBuilder};
pub use mcp_sansio_async::http_client::{ConnectorError, FetchError, ResponseBody};

/// Why there is no connection to a server over HTTP.
pub type ConnectError = mcp_sansio_async::ConnectError<ConnectorError>;

/// Performs the exchanges of a client with a [`Connector`].
pub type AsyncExchanger = mcp_sansio_async::http_client::HyperExchanger<Connector>;

/// An exchange of an [`AsyncExchanger`].
pub type AsyncExchange = mcp_sansio_async::http_client::HyperExchange;
