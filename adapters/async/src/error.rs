use std::convert::Infallible;
use std::io;

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::peer::CloseReason;
use mcp_sansio_handlers::ClientError;

use crate::DriveError;
use crate::child::SpawnError;

/// Anything that can go wrong in a small program: what its `main` returns. Its `Debug`, which is
/// what `main` prints, is its `Display`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server offers something that it cannot: the caller's fault.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The server offers something that it cannot over HTTP: the caller's fault.
    #[cfg(feature = "http-server")]
    #[error(transparent)]
    Http(#[from] mcp_sansio_handlers::HttpServerError),
    /// The server's process could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The connection could not be opened, or is over.
    #[error("{reason}{}", DisplayTail(.stderr_tail))]
    Closed {
        /// Why.
        reason: Box<CloseReason>,
        /// The last lines of the server's standard error.
        stderr_tail: Vec<String>,
    },
    /// There is no connection to the server over HTTP.
    #[cfg(feature = "http")]
    #[error(transparent)]
    Connect(#[from] Box<crate::ConnectError<crate::http_client::ConnectorError>>),
    /// The stream broke.
    #[error(transparent)]
    Stream(#[from] DriveError),
    /// A call has no result.
    #[error(transparent)]
    Call(#[from] ClientError),
    /// The operating system.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// For what cannot fail, such as to make a listener into another.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// The last words of a server, where it had any.
struct DisplayTail<'a>(&'a [String]);

impl std::fmt::Display for DisplayTail<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            [] => Ok(()),
            lines => write!(f, "; the server's last words: {}", lines.join(" | ")),
        }
    }
}
