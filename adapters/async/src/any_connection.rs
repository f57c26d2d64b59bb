use std::ops::Deref;

use mcp_sansio_handlers::Client;

use crate::Error;
use crate::child::{ChildConnection, Process};
#[cfg(feature = "http")]
use crate::http_client::HttpConnection;

/// A connection to a server, over any transport: the type of connections in
/// [`Servers`](mcp_sansio_handlers::Servers) of several kinds. Derefs to the [`Client`].
///
/// Create it with `from` of a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyConnection<P: Process> {
    /// A server that the client started.
    Child(ChildConnection<P>),
    /// A server over HTTP.
    #[cfg(feature = "http")]
    Http(HttpConnection),
    /// A connection that the application drives.
    Driven(Client),
}

impl<P: Process> AnyConnection<P> {
    /// Closes the connection: [`ChildConnection::shutdown`], `HttpConnection::close` or
    /// [`Client::close`].
    ///
    /// # Errors
    ///
    /// As [`ChildConnection::shutdown`].
    pub async fn shutdown(self) -> Result<(), Error> {
        match self {
            Self::Child(child) => drop(child.shutdown().await?),
            #[cfg(feature = "http")]
            Self::Http(connection) => connection.close().await,
            Self::Driven(client) => client.close(),
        }
        Ok(())
    }
}

impl<P: Process> From<ChildConnection<P>> for AnyConnection<P> {
    fn from(connection: ChildConnection<P>) -> Self {
        Self::Child(connection)
    }
}

#[cfg(feature = "http")]
impl<P: Process> From<HttpConnection> for AnyConnection<P> {
    fn from(connection: HttpConnection) -> Self {
        Self::Http(connection)
    }
}

impl<P: Process> From<Client> for AnyConnection<P> {
    fn from(client: Client) -> Self {
        Self::Driven(client)
    }
}

impl<P: Process> Deref for AnyConnection<P> {
    type Target = Client;

    fn deref(&self) -> &Client {
        match self {
            Self::Child(connection) => connection,
            #[cfg(feature = "http")]
            Self::Http(connection) => connection,
            Self::Driven(client) => client,
        }
    }
}
