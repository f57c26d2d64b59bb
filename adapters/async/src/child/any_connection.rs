use std::fmt::Debug;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;

use mcp_sansio_handlers::Client;

use super::{ChildConnection, Process};
use crate::Error;

/// A connection to a server, over any transport: the type of connections in
/// [`Servers`](mcp_sansio_handlers::Servers) of several kinds. Derefs to the [`Client`].
///
/// Create it with `from` of a connection.
#[derive(Debug)]
pub struct AnyConnection(Box<dyn Connection>);

/// A connection to a server, in an [`AnyConnection`].
pub(crate) trait Connection: Debug + Deref<Target = Client> + Send + Sync {
    /// Closes the connection, and waits until it is closed.
    fn shutdown(self: Box<Self>) -> Shutdown;
}

pub(crate) type Shutdown = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

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
    pub async fn shutdown(self) -> Result<(), Error> {
        self.0.shutdown().await
    }
}

impl<P: Process> From<ChildConnection<P>> for AnyConnection {
    fn from(connection: ChildConnection<P>) -> Self {
        Self::new(connection)
    }
}

impl<P: Process> Connection for ChildConnection<P> {
    fn shutdown(self: Box<Self>) -> Shutdown {
        Box::pin(async { (*self).shutdown().await.map(drop) })
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
    fn shutdown(self: Box<Self>) -> Shutdown {
        self.0.close();
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Deref for AnyConnection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}
