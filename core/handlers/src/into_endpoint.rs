use mcp_sansio::catalog::CatalogError;
use mcp_sansio::stream::Endpoint;

use super::server::Server;
use super::server_endpoint::ServerEndpoint;
use super::threading::Threading;

/// A type that can serve a connection: an [`Endpoint`], or a [`Server`], which creates one.
pub trait IntoEndpoint {
    /// The type of the endpoint.
    type Endpoint: Endpoint;

    /// Creates the endpoint of one connection; `seed` is a random number, see
    /// [`peer::Server::new`](mcp_sansio::peer::Server::new).
    ///
    /// # Errors
    ///
    /// An item of the server's catalog is invalid, or a state of a handler is missing.
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

    // Nothing is cloned, so that a program with one connection contains no code for cloning.
    fn into_endpoint(self, seed: u64) -> Result<ServerEndpoint<K>, CatalogError> {
        if let Some(problem) = self.problem() {
            return Err(problem);
        }
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
