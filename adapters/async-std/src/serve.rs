use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio_async::{ByteStream, Driver, Settings};
use mcp_sansio_handlers::{Endpoint, IntoEndpoint};

use crate::{AsyncTimer, Error, FuturesStream, StandardStreams, seed};

/// A driver of `endpoint` over `stream`, to await or to spawn.
///
/// ```no_run
/// # use mcp_sansio_handlers::{Endpoint, IntoEndpoint};
/// # #[cfg(feature = "smol")]
/// # async fn serve<E: Endpoint + Send + 'static>(new_endpoint: impl Fn() -> E) -> std::io::Result<()> {
/// use mcp_sansio_async_std::{SocketStream, drive};
///
/// let listener = smol::net::TcpListener::bind("127.0.0.1:7000").await?;
/// loop {
///     let (socket, _) = listener.accept().await?;
///     smol::spawn(drive(new_endpoint(), SocketStream::from(socket))).detach();
/// }
/// # }
/// ```
#[must_use]
pub fn drive<E: Endpoint, S: ByteStream>(endpoint: E, stream: S) -> Driver<E, S, AsyncTimer> {
    drive_with(endpoint, stream, Settings::default())
}

/// As [`drive`], with settings of the caller's.
#[must_use]
pub fn drive_with<E: Endpoint, S: ByteStream>(
    endpoint: E,
    stream: S,
    settings: Settings,
) -> Driver<E, S, AsyncTimer> {
    Driver::with_settings(endpoint, stream, AsyncTimer::new(), settings)
}

/// Serves on a reader and a writer until the connection is over: a
/// [`Server`](mcp_sansio_handlers::Server), or an endpoint made from one.
///
/// # Errors
///
/// The server offers something that it cannot, or the stream failed. That the other side has gone
/// is no error.
pub async fn serve<S, R, W>(server: S, reader: R, writer: W) -> Result<(), Error>
where
    S: IntoEndpoint,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let endpoint = server.into_endpoint(seed())?;
    Ok(drive(endpoint, FuturesStream::new(reader, writer)).await?)
}

/// Serves on the standard streams of this process, see [`StandardStreams`], until the connection
/// is over: a [`Server`](mcp_sansio_handlers::Server), or an endpoint made from one. Exit then, to
/// tell the other side.
///
/// Meanwhile nothing else may write to the standard output: use the standard error for words.
///
/// # Errors
///
/// The server offers something that it cannot, or a stream failed. That the other side has gone is
/// no error.
// MCP 2025-11-25 basic/transports#stdio [STDIO-002] [STDIO-003]: only the driver writes to the
// stream.
pub async fn serve_stdio(server: impl IntoEndpoint) -> Result<(), Error> {
    let endpoint = server.into_endpoint(seed())?;
    Ok(drive_with(endpoint, StandardStreams::open(), Settings::pipe()).await?)
}

/// What [`Server::tasks`](crate::Server::tasks) takes: entropy and the time of day from the
/// operating system. A clock that is set later is not followed.
///
/// # Errors
///
/// The operating system has no entropy.
#[cfg(feature = "tasks")]
pub fn task_settings() -> std::io::Result<mcp_sansio_handlers::TaskSettings> {
    mcp_sansio_async::task_settings(crate::now())
}
