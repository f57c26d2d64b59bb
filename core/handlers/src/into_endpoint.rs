use mcp_sansio::catalog::CatalogError;
use mcp_sansio::stream::Endpoint;

use super::server::Server;
use super::server_endpoint::ServerEndpoint;
use super::threading::Threading;

/// What can serve a connection: an [`Endpoint`], or a [`Server`] from which one is made.
pub trait IntoEndpoint {
    /// The endpoint.
    type Endpoint: Endpoint;

    /// Makes the endpoint of one connection; `seed` is a random number, see
    /// [`peer::Server::new`](mcp_sansio::peer::Server::new).
    ///
    /// # Errors
    ///
    /// The caller's: the server offers something that it cannot.
    fn into_endpoint(self, seed: u64) -> Result<Self::Endpoint, CatalogError>;
}

impl<E: Endpoint> IntoEndpoint for E {
    type Endpoint = E;

    fn into_endpoint(self, _: u64) -> Result<E, CatalogError> {
        Ok(self)
    }
}

impl<K: Threading> IntoEndpoint for Server<K> {
    type Endpoint = ServerEndpoint<K>;

    // Nothing is copied, so that a program with one connection has no code for it.
    fn into_endpoint(self, seed: u64) -> Result<ServerEndpoint<K>, CatalogError> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(ServerEndpoint::new(self, seed)),
        }
    }
}

impl<K: Threading> IntoEndpoint for &Server<K> {
    type Endpoint = ServerEndpoint<K>;

    fn into_endpoint(self, seed: u64) -> Result<ServerEndpoint<K>, CatalogError> {
        self.endpoint(seed)
    }
}
