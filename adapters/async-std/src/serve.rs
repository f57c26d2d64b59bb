use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio_async::{ByteStream, Driver, Runtime as _, StreamSettings};
use mcp_sansio_handlers::endpoint::{Endpoint, IntoEndpoint};
use mcp_sansio_handlers::handler::Spawner;

use crate::runtime::AsyncRuntime;
use crate::runtime::{AsyncTimer, FuturesStream, StandardStreams};
use crate::{Error, seed};

/// Creates a driver of `endpoint` over `stream`, to await or to spawn.
///
/// ```no_run
/// # use mcp_sansio_handlers::endpoint::{Endpoint, IntoEndpoint};
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
    drive_with(endpoint, stream, StreamSettings::default())
}

/// Like [`drive`], with the given settings.
#[must_use]
pub fn drive_with<E: Endpoint, S: ByteStream>(
    mut endpoint: E,
    stream: S,
    settings: StreamSettings,
) -> Driver<E, S, AsyncTimer> {
    endpoint.set_spawner(Spawner::new(AsyncRuntime::spawn_blocking));
    Driver::with_settings(endpoint, stream, AsyncTimer::new(), settings)
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
    serve_stream(server, FuturesStream::new(reader, writer)).await
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
/// Meanwhile, output of `println!` and the like goes to the standard error on Unix. On other systems
/// the program itself must not print.
///
/// # Errors
///
/// The server's catalog is invalid, or a stream failed. A disconnect of the peer is not an error.
// MCP 2025-11-25 basic/transports#stdio [STDIO-002] [STDIO-003]: only the driver writes to the
// stream.
pub async fn serve_stdio(server: impl IntoEndpoint) -> Result<(), Error> {
    let endpoint = server.into_endpoint(seed())?;
    Ok(drive_with(endpoint, StandardStreams::open(), StreamSettings::pipe()).await?)
}
