use std::ops::Deref;

use mcp_sansio_handlers::Client;

#[cfg(feature = "http-client")]
use crate::HttpConnection;
use crate::{ChildConnection, Error};

/// A connection to a server, over any transport: the type of connections in
/// [`Servers`](crate::Servers) of several kinds. Derefs to the [`Client`].
///
/// Create it with `from` of a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyConnection {
    /// A server that the client started.
    Child(ChildConnection),
    /// A server over HTTP.
    #[cfg(feature = "http-client")]
    Http(HttpConnection),
    /// A connection that the application drives.
    Driven(Client),
}

impl AnyConnection {
    /// Closes the connection: [`ChildConnection::shutdown`], `HttpConnection::close` or
    /// [`Client::close`].
    ///
    /// # Errors
    ///
    /// As [`ChildConnection::shutdown`].
    pub fn shutdown(self) -> Result<(), Error> {
        match self {
            Self::Child(child) => drop(child.shutdown()?),
            #[cfg(feature = "http-client")]
            Self::Http(connection) => connection.close(),
            Self::Driven(client) => client.close(),
        }
        Ok(())
    }
}

impl From<ChildConnection> for AnyConnection {
    fn from(connection: ChildConnection) -> Self {
        Self::Child(connection)
    }
}

#[cfg(feature = "http-client")]
impl From<HttpConnection> for AnyConnection {
    fn from(connection: HttpConnection) -> Self {
        Self::Http(connection)
    }
}

impl From<Client> for AnyConnection {
    fn from(client: Client) -> Self {
        Self::Driven(client)
    }
}

impl Deref for AnyConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        match self {
            Self::Child(connection) => connection,
            #[cfg(feature = "http-client")]
            Self::Http(connection) => connection,
            Self::Driven(client) => client,
        }
    }
}
