use std::io::{self, Read, Write};

use mcp_sansio_async::{ByteStream, DriveError, Driver, Settings};
use mcp_sansio_handlers::{Endpoint, IntoEndpoint};

#[cfg(unix)]
use crate::standard_output::StandardOutput;
use crate::{Clock, Error, PipeStream, ThreadedStream, block_on, seed};

/// Why a connection did not come about, or broke.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The stream could not be used, or not be waited for: the system's fault, or the caller's who
    /// gave an unfit stream.
    #[error("the connection cannot be served: {0}")]
    System(#[source] io::Error),
    /// The connection broke: the stream's fault, or the other side's. Everything that was going on
    /// has been told.
    #[error(transparent)]
    Connection(#[from] DriveError),
}

/// Serves on the standard streams until the connection ends: what the `main` of a server is made
/// of.
///
/// As long as it lasts, what the process prints with `println!` and the like goes to the standard
/// error, and what it starts reads nothing from the standard input, so that neither gets between
/// the messages. On other systems than Unix it is up to the program to print nothing.
///
/// It returns at the latest 1.5 s after the end of the input ([`Settings::linger`]), as soon as
/// everything is answered, and at once if nothing is left to answer.
///
/// # Errors
///
/// The server offers something that it cannot; or see [`ServeError`]. That the other side has gone
/// is none.
// MCP 2026-07-28 basic/transports/stdio#shutdown [STDIO-017]: a server exits promptly when its
// input ends.
pub fn serve_stdio(server: impl IntoEndpoint) -> Result<(), Error> {
    let endpoint = server.into_endpoint(seed())?;
    let stream = PipeStream::stdio().map_err(ServeError::System)?;
    #[cfg(unix)]
    let _kept_clean = StandardOutput::redirect().map_err(ServeError::System)?;
    Ok(drive(endpoint, stream, Settings::pipe())?)
}

/// Serves on a reader and a writer, each on a thread of its own, until the connection ends. The
/// endpoint stays on the calling thread.
///
/// For pipes, sockets and standard streams use [`serve_stream`] and [`serve_stdio`], which need no
/// threads. See [`ThreadedStream`] for when these end.
///
/// # Errors
///
/// See [`ServeError`]. That the other side has gone is none.
pub fn serve(
    server: impl IntoEndpoint,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
) -> Result<(), Error> {
    let endpoint = server.into_endpoint(seed())?;
    let stream = ThreadedStream::new(reader, writer).map_err(ServeError::System)?;
    Ok(drive(endpoint, stream, Settings::default())?)
}

/// Serves on a socket until the connection ends: a `TcpStream` or a `UnixStream`. For other
/// streams there is [`drive`].
///
/// # Errors
///
/// See [`ServeError`]. That the other side has gone is none.
pub fn serve_stream(
    server: impl IntoEndpoint,
    stream: impl TryInto<PipeStream, Error = io::Error>,
) -> Result<(), Error> {
    let endpoint = server.into_endpoint(seed())?;
    let stream = stream.try_into().map_err(ServeError::System)?;
    Ok(drive(endpoint, stream, Settings::default())?)
}

/// Drives any endpoint over any stream until the connection ends, with settings of the caller's.
///
/// # Errors
///
/// See [`ServeError`]. That the other side has gone is none.
pub fn drive(
    endpoint: impl Endpoint,
    stream: impl ByteStream,
    settings: Settings,
) -> Result<(), ServeError> {
    let driver = Driver::with_settings(endpoint, stream, Clock::new(), settings);
    Ok(block_on(driver).map_err(ServeError::System)??)
}
