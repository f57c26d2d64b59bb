use mcp_sansio_async::{ByteStream, Driver, Runtime as _, StreamSettings};
use mcp_sansio_handlers::endpoint::{Endpoint, IntoEndpoint};
use mcp_sansio_handlers::handler::Spawner;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::runtime::TokioRuntime;
use crate::runtime::{StandardStreams, TokioTimer};
use crate::{Error, TokioStream, seed};

/// Creates a driver of `endpoint` over `stream`, to await or to spawn.
///
/// ```no_run
/// # use mcp_sansio_handlers::endpoint::{Endpoint, IntoEndpoint};
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
    drive_with(endpoint, stream, StreamSettings::default())
}

/// Like [`drive`], with the given settings.
#[must_use]
pub fn drive_with<E: Endpoint, S: ByteStream>(
    mut endpoint: E,
    stream: S,
    settings: StreamSettings,
) -> Driver<E, S, TokioTimer> {
    endpoint.set_spawner(Spawner::new(TokioRuntime::spawn_blocking));
    Driver::with_settings(endpoint, stream, TokioTimer::new(), settings)
}

/// Serves on a reader and a writer until the connection is over. `server` is a
/// [`Server`](mcp_sansio_handlers::Server), or an endpoint created from one.
///
/// # Errors
///
/// The server's catalog is invalid, or the stream failed. A disconnect of the peer is not an error.
pub async fn serve<S, R, W>(server: S, reader: R, writer: W) -> Result<(), Error>
where
    S: IntoEndpoint,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve_stream(server, TokioStream::new(reader, writer)).await
}

/// Serves on a stream until the connection is over, such as a [`MessageStream`](crate::MessageStream)
/// or a stream of your own. `server` is a [`Server`](mcp_sansio_handlers::Server), a reference to one,
/// or an endpoint created from one.
///
/// # Errors
///
/// As [`serve`].
pub async fn serve_stream(server: impl IntoEndpoint, stream: impl ByteStream) -> Result<(), Error> {
    Ok(drive(server.into_endpoint(seed())?, stream).await?)
}

/// Serves on the [`StandardStreams`] of this process until the connection is over. `server` is a
/// [`Server`](mcp_sansio_handlers::Server), or an endpoint created from one. Exit afterwards, so
/// that the peer sees the end.
///
/// It returns at the latest 1.5 s after the end of the input ([`StreamSettings::linger`]), as soon
/// as everything is answered, and at once if nothing is pending.
///
/// On Unix, if both are pipes or sockets, output of `println!` and the like goes to the standard
/// error meanwhile. With files, terminals and other systems the program itself must not print.
///
/// # Errors
///
/// The server's catalog is invalid, or a stream failed. A disconnect of the peer is not an error.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O and time enabled.
// MCP 2025-11-25 basic/transports#stdio [STDIO-002] [STDIO-003]: only the driver writes to the
// stream.
pub async fn serve_stdio(server: impl IntoEndpoint) -> Result<(), Error> {
    let endpoint = server.into_endpoint(seed())?;
    Ok(drive_with(endpoint, StandardStreams::open(), StreamSettings::pipe()).await?)
}
