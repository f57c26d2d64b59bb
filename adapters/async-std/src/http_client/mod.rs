//! The client over HTTP: what moves the bytes of exchanges, and knows no rule of what they carry.

mod connection;
mod connector;
mod connector_error;
mod dialer;
mod exchanger;
mod response_body;
mod tls;
mod wire;

pub use connection::{HttpConnection, connect, connect_with, drive_http};
pub use connector::{Connector, ConnectorBuilder};
pub use connector_error::ConnectorError;
pub use exchanger::{AsyncExchange, AsyncExchanger};
pub use response_body::ResponseBody;

/// Why there is no connection to a server over HTTP.
pub type ConnectError = mcp_sansio_async::ConnectError<ConnectorError>;
