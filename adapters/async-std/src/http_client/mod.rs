//! The client over HTTP: what moves the bytes of exchanges, and knows no rule of what they carry.

mod connect_error;
mod connection;
mod connector;
mod connector_error;
mod dialer;
mod exchanger;
mod response_body;
mod tls;
mod wire;

pub use connect_error::ConnectError;
pub use connection::{HttpConnection, connect, connect_with, drive_http};
pub use connector::{Connector, ConnectorBuilder};
pub use connector_error::ConnectorError;
pub use exchanger::{AsyncExchange, AsyncExchanger};
pub use response_body::ResponseBody;
