use std::fmt::Debug;
use std::ops::Deref;

use mcp_sansio_handlers::Client;

use crate::{ChildConnection, Error};

/// A connection to a server, over any transport: the type of connections in
/// [`Servers`](crate::Servers) of several kinds. Derefs to the [`Client`].
///
/// Create it with `from` of a connection.
#[derive(Debug)]
pub struct AnyConnection(Box<dyn Connection>);

/// A connection to a server, in an [`AnyConnection`].
pub(crate) trait Connection: Debug + Deref<Target = Client> + Send + Sync {
    /// Closes the connection, and waits until it is closed.
    fn shutdown(self: Box<Self>) -> Result<(), Error>;
}

impl AnyConnection {
    pub(crate) fn new(connection: impl Connection + 'static) -> Self {
        Self(Box::new(connection))
    }

    /// Closes the connection: [`ChildConnection::shutdown`], `HttpConnection::close` or
    /// [`Client::close`].
    ///
    /// # Errors
    ///
    /// As [`ChildConnection::shutdown`].
    pub fn shutdown(self) -> Result<(), Error> {
        self.0.shutdown()
    }
}

impl From<ChildConnection> for AnyConnection {
    fn from(connection: ChildConnection) -> Self {
        Self::new(connection)
    }
}

impl Connection for ChildConnection {
    fn shutdown(self: Box<Self>) -> Result<(), Error> {
        (*self).shutdown().map(drop)
    }
}

impl From<Client> for AnyConnection {
    /// Of a connection that the application drives.
    fn from(client: Client) -> Self {
        Self::new(DrivenConnection(client))
    }
}

/// A connection that the application drives.
#[derive(Debug)]
struct DrivenConnection(Client);

impl Deref for DrivenConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl Connection for DrivenConnection {
    fn shutdown(self: Box<Self>) -> Result<(), Error> {
        self.0.close();
        Ok(())
    }
}

impl Deref for AnyConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}
