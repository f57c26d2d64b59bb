//! The client over HTTP with blocking calls: what moves the bytes of exchanges, and knows no rule of
//! what they carry.

mod agents;
mod connection;
mod connector;
mod connector_error;
mod exchange;
mod exchanger;
mod tls;

pub use connection::{HttpConnection, connect, connect_with};
pub use connector::{Connector, ConnectorBuilder};
pub use connector_error::ConnectorError;
pub use exchange::ThreadedExchange;
pub use exchanger::ThreadedExchanger;

/// Why there is no connection to a server over HTTP.
pub type ConnectError = mcp_sansio_async::ConnectError<ConnectorError>;
