//! The client over HTTP on tokio: what moves the bytes of exchanges, and knows no rule of what they
//! carry.

mod connection;
mod connector;
mod connector_error;
mod dialer;
#[cfg(feature = "auth")]
mod equipment;
mod exchanger;
mod proxy;
mod response_body;
mod tls;

pub use connection::{HttpConnection, connect, connect_with, drive_http};
pub use connector::{Connector, ConnectorBuilder};
pub use connector_error::ConnectorError;
#[cfg(feature = "auth")]
pub use equipment::equip;
pub use exchanger::{TokioExchange, TokioExchanger};
pub use proxy::Proxy;
pub use response_body::ResponseBody;

/// Why there is no connection to a server over HTTP.
pub type ConnectError = mcp_sansio_async::ConnectError<ConnectorError>;
