use mcp_sansio::handler::Endpoint;
use mcp_sansio_async::{ByteStream, DriveError, Driver, Settings};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{StandardStreams, TokioStream, TokioTimer};

/// A driver of `endpoint` over `stream`, to await or to spawn.
///
/// ```no_run
/// # use mcp_sansio::handler::Endpoint;
/// # async fn serve<E: Endpoint + Send + 'static>(new_endpoint: impl Fn() -> E) -> std::io::Result<()> {
/// use mcp_sansio_tokio::{TokioStream, drive};
///
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7000").await?;
/// loop {
///     let (socket, _) = listener.accept().await?;
///     tokio::spawn(drive(new_endpoint(), TokioStream::from(socket)));
/// }
/// # }
/// ```
#[must_use]
pub fn drive<E: Endpoint, S: ByteStream>(endpoint: E, stream: S) -> Driver<E, S, TokioTimer> {
    drive_with(endpoint, stream, Settings::default())
}

/// As [`drive`], with settings of the caller's.
#[must_use]
pub fn drive_with<E: Endpoint, S: ByteStream>(
    endpoint: E,
    stream: S,
    settings: Settings,
) -> Driver<E, S, TokioTimer> {
    Driver::with_settings(endpoint, stream, TokioTimer::new(), settings)
}

/// Drives `endpoint` over a reader and a writer until the connection is over.
///
/// # Errors
///
/// The stream failed, see [`DriveError`]. That the other side has gone is no error.
pub async fn serve<E, R, W>(endpoint: E, reader: R, writer: W) -> Result<(), DriveError>
where
    E: Endpoint,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    drive(endpoint, TokioStream::new(reader, writer)).await
}

/// Drives `endpoint` over the standard streams of this process, see [`StandardStreams`], until the
/// connection is over. Exit then, to tell the other side.
///
/// Meanwhile nothing else may write to the standard output: use the standard error for words.
///
/// # Errors
///
/// A stream failed, see [`DriveError`]. That the other side has gone is no error.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
// MCP 2026-07-28 basic/transports/stdio [STDIO-002] [STDIO-003]: only the driver writes to the
// stream.
pub async fn serve_stdio<E: Endpoint>(endpoint: E) -> Result<(), DriveError> {
    drive(endpoint, StandardStreams::open()).await
}
