//! The blocking client over HTTP: transports the bytes of exchanges, independent of the protocol.

mod agent_pool;
mod body;
mod connection;
mod connector;
mod exchange;
mod tls;
#[cfg(unix)]
mod unix_transport;

pub use body::ThreadedBody;
#[cfg(unix)]
pub use connection::connect_unix;
pub use connection::{HttpConnection, connect, connect_with};
pub use connector::{Connector, ConnectorBuilder};
use mcp_sansio_async::http_client::{ConnectorError, ConnectorExchange, ConnectorExchanger};

/// Why a connection to a server over HTTP could not be opened.
pub type ConnectError = mcp_sansio_async::ConnectError<ConnectorError>;

/// Performs the exchanges of a client with a [`Connector`], each on its own thread.
pub type ThreadedExchanger = ConnectorExchanger<Connector>;

/// An exchange of a [`ThreadedExchanger`].
pub type ThreadedExchange = ConnectorExchange<ThreadedBody>;
