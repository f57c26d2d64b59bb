use std::convert::Infallible;
use std::io;
use std::process::ExitStatus;

use mcp_sansio::Printable;
use mcp_sansio::catalog::CatalogError;
use mcp_sansio::peer::CloseReason;
#[cfg(feature = "client")]
use mcp_sansio_handlers::ClientError;

use crate::DriveError;
#[cfg(feature = "client")]
use crate::child::SpawnError;

/// Any error of a small program, to be returned from `main`. Its `Debug` output, which `main`
/// prints, equals its `Display` output.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server's catalog is invalid: the caller's fault.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The server process could not be started.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The connection could not be opened, or has closed.
    #[error("{}{}{}", DisplayReason(.reason, *.status), DisplayStray(.stray_line.as_deref()), DisplayTail(.stderr_tail))]
    Closed {
        /// Why it closed.
        reason: Box<CloseReason>,
        /// The exit status of a server process whose exit was the reason.
        status: Option<ExitStatus>,
        /// The first line of the server that was not a message.
        stray_line: Option<Box<str>>,
        /// The last lines of the server's standard error.
        stderr_tail: Vec<String>,
    },
    /// The connection to the server over HTTP could not be opened.
    #[cfg(feature = "http-client")]
    #[error(transparent)]
    Connect(#[from] Box<crate::http_client::ConnectError<crate::http_client::ConnectorError>>),
    /// The server cannot listen on the Unix-domain socket.
    #[cfg(all(unix, feature = "http-server"))]
    #[error(transparent)]
    UnixSocket(#[from] crate::http_server::UnixSocketError),
    /// The stream broke.
    #[error(transparent)]
    Stream(#[from] DriveError),
    /// A call failed.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Call(#[from] ClientError),
    /// An error of the operating system.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// For infallible conversions, such as that of a listener into itself.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<CloseReason> for Error {
    fn from(reason: CloseReason) -> Self {
        let (stray_line, stderr_tail) = (None, Vec::new());
        Self::Closed { reason: Box::new(reason), status: None, stray_line, stderr_tail }
    }
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Displays why a connection closed: the exit of the server, if that was the reason.
struct DisplayReason<'a>(&'a CloseReason, Option<ExitStatus>);

impl std::fmt::Display for DisplayReason<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.1 {
            Some(status) => write!(f, "the server exited: {status}"),
            None => self.0.fmt(f),
        }
    }
}

/// Displays a line of the server that was not a message, if any.
struct DisplayStray<'a>(Option<&'a str>);

impl std::fmt::Display for DisplayStray<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(line) => write!(
                f,
                "; its standard output has a line that is not a message: `{}`",
                Printable::new(line)
            ),
            None => Ok(()),
        }
    }
}

/// Displays the last lines of the server's standard error, if any.
struct DisplayTail<'a>(&'a [String]);

impl std::fmt::Display for DisplayTail<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            [] => Ok(()),
            lines => {
                let lines = lines.join(" | ");
                let lines = Printable::new(&lines);
                write!(f, "; the last lines of the server's standard error: {lines}")
            }
        }
    }
}
