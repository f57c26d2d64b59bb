//! The client over HTTP with blocking calls: what moves the bytes of exchanges, and knows no rule of
//! what they carry.

mod agent_pool;
mod body;
mod connection;
mod connector;
mod exchange;
mod tls;

pub use body::ThreadedBody;
pub use connection::{HttpConnection, connect, connect_with};
pub use connector::{Connector, ConnectorBuilder};
use mcp_sansio_async::http_client::{ConnectorError, ConnectorExchange, ConnectorExchanger};

/// Why there is no connection to a server over HTTP.
pub type ConnectError = mcp_sansio_async::ConnectError<ConnectorError>;

/// Performs the exchanges of a client with a [`Connector`], each on a thread of its own.
pub type ThreadedExchanger = ConnectorExchanger<Connector>;

/// An exchange of a [`ThreadedExchanger`].
pub type ThreadedExchange = ConnectorExchange<ThreadedBody>;
