use std::fmt;
use std::io;

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::peer::CloseReason;
use mcp_sansio_async::child::SpawnError;
use mcp_sansio_handlers::ClientError;

use crate::ServeError;

/// Anything that can go wrong in a small program: what its `main` returns. Its `Debug`, which is
/// what `main` prints, is its `Display`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server offers something that it cannot: the caller's fault.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The server's process could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The connection could not be opened, or is over.
    #[error("{reason}{}", Said(.stderr_tail))]
    Closed {
        /// Why.
        reason: Box<CloseReason>,
        /// The last lines of the server's standard error.
        stderr_tail: Vec<String>,
    },
    /// The server offers something that it cannot over HTTP: the caller's fault.
    #[cfg(feature = "http-server")]
    #[error(transparent)]
    Http(#[from] mcp_sansio_handlers::HttpServerError),
    /// There is no connection to the server over HTTP.
    #[cfg(feature = "http-client")]
    #[error(transparent)]
    Connect(#[from] Box<crate::ConnectError>),
    /// The connection did not come about, or broke.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A call has no result.
    #[error(transparent)]
    Call(#[from] ClientError),
    /// The operating system.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl From<mcp_sansio_async::Error> for Error {
    fn from(error: mcp_sansio_async::Error) -> Self {
        use mcp_sansio_async::Error as Shared;

        match error {
            Shared::Catalog(error) => Self::Catalog(error),
            Shared::Spawn(error) => Self::Spawn(error),
            Shared::Closed { reason, stderr_tail } => Self::Closed { reason, stderr_tail },
            Shared::Stream(error) => Self::Serve(error.into()),
            Shared::Call(error) => Self::Call(error),
            Shared::System(error) => Self::System(error),
            error => Self::System(io::Error::other(error.to_string())),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The last words of a server, where it had any.
struct Said<'a>(&'a [String]);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            lines => write!(f, "; the server's last words: {}", lines.join(" | ")),
        }
    }
}
