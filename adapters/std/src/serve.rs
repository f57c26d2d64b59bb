use std::io::{self, Read, Write};

use mcp_sansio_async::{ByteStream, Driver, Runtime as _, StreamSettings};
use mcp_sansio_handlers::endpoint::{Endpoint, IntoEndpoint};
use mcp_sansio_handlers::handler::Spawner;

use crate::runtime::ThreadRuntime;
use crate::{Clock, Error, PipeStream, ThreadedStream, block_on, seed};

/// Serves on the standard streams until the connection ends. Usually all that the `main` of a
/// server needs.
///
/// Meanwhile, output of `println!` and the like goes to the standard error, and child processes
/// read nothing from the standard input, so that neither interferes with the messages. On systems
/// other than Unix the program itself must not print.
///
/// It returns at the latest 1.5 s after the end of the input ([`StreamSettings::linger`]), as soon
/// as everything is answered, and at once if nothing is pending.
///
/// # Errors
///
/// The server's catalog is invalid; the streams cannot be used; the connection broke. A disconnect
/// of the peer is not an error.
pub fn serve_stdio(server: impl IntoEndpoint) -> Result<(), Error> {
    let endpoint = server.into_endpoint(seed())?;
    let stream = PipeStream::stdio()?;
    drive(endpoint, stream, StreamSettings::pipe())
}

/// Serves on a reader and a writer, each on its own thread, until the connection ends. The endpoint
/// stays on the calling thread.
///
/// For pipes, sockets and standard streams use [`serve_stream`] and [`serve_stdio`], which need no
/// threads. See [`ThreadedStream`] for when these end.
///
/// # Errors
///
/// The stream cannot be used, or broke. A disconnect of the peer is not an error.
pub fn serve(
    server: impl IntoEndpoint,
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
) -> Result<(), Error> {
    let endpoint = server.into_endpoint(seed())?;
    let stream = ThreadedStream::new(reader, writer);
    drive(endpoint, stream, StreamSettings::default())
}

/// Serves on a socket until the connection ends: a `TcpStream` or a `UnixStream`. Use [`drive`] for
/// other streams.
///
/// # Errors
///
/// The stream cannot be used, or broke. A disconnect of the peer is not an error.
pub fn serve_stream(
    server: impl IntoEndpoint,
    stream: impl TryInto<PipeStream, Error = io::Error>,
) -> Result<(), Error> {
    let endpoint = server.into_endpoint(seed())?;
    let stream = stream.try_into()?;
    drive(endpoint, stream, StreamSettings::default())
}

/// Drives any endpoint over any stream until the connection ends, with the given settings.
///
/// # Errors
///
/// The stream cannot be used, or broke. A disconnect of the peer is not an error.
pub fn drive(
    endpoint: impl Endpoint,
    stream: impl ByteStream,
    settings: StreamSettings,
) -> Result<(), Error> {
    Ok(block_on(driver(endpoint, stream, settings))?)
}

/// Creates a driver whose blocking handlers run on threads.
pub(crate) fn driver<E: Endpoint, S: ByteStream>(
    mut endpoint: E,
    stream: S,
    settings: StreamSettings,
) -> Driver<E, S, Clock> {
    endpoint.set_spawner(Spawner::new(ThreadRuntime::spawn_blocking));
    Driver::with_settings(endpoint, stream, Clock::new(), settings)
}
