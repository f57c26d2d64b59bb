use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mcp_sansio_async::ByteStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, tcp};
#[cfg(unix)]
use tokio::net::{UnixStream, unix};

/// A [`ByteStream`] from a reader and a writer of tokio.
///
/// Create it with `from` from a socket; anything else that both reads and writes, such as a TLS
/// stream, goes through [`tokio::io::split`].
///
/// ```
/// use mcp_sansio_tokio::{self as mcp, Host, Server, TokioStream};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
///
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let socket = tokio::net::TcpStream::connect(listener.local_addr()?).await?;
/// let (accepted, _) = listener.accept().await?;
///
/// let server = Server::new("clock", "1.0.0").endpoint(mcp::seed())?;
/// tokio::spawn(mcp::drive(server, TokioStream::from(accepted)));
/// let (client, endpoint) = Host::new("demo", "1.0.0").connect(mcp::seed(), mcp::now());
/// tokio::spawn(mcp::drive(endpoint, TokioStream::from(socket)));
/// client.opened().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TokioStream<R, W> {
    reader: R,
    /// Dropped when closed: a pipe has no other way to signal the end.
    writer: Option<W>,
}

impl<R, W> TokioStream<R, W> {
    /// Creates a stream that reads from `reader` and writes to `writer`.
    #[must_use]
    pub const fn new(reader: R, writer: W) -> Self {
        Self { reader, writer: Some(writer) }
    }
}

// MCP 2026-07-28 basic/transports/index#custom-transports [STDIO-021]: sockets carry the framing of
// standard streams.
impl From<TcpStream> for TokioStream<tcp::OwnedReadHalf, tcp::OwnedWriteHalf> {
    /// Sends small messages at once (`TCP_NODELAY`), since the driver already batches its output.
    fn from(socket: TcpStream) -> Self {
        // Fails only on a broken socket, which the next read reports.
        let _ = socket.set_nodelay(true);
        let (reader, writer) = socket.into_split();
        Self::new(reader, writer)
    }
}

#[cfg(unix)]
impl From<UnixStream> for TokioStream<unix::OwnedReadHalf, unix::OwnedWriteHalf> {
    fn from(socket: UnixStream) -> Self {
        let (reader, writer) = socket.into_split();
        Self::new(reader, writer)
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> ByteStream for TokioStream<R, W> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.reader).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.writer {
            Some(writer) => Pin::new(writer).poll_write(cx, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.writer {
            Some(writer) => Pin::new(writer).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(writer) = &mut self.writer else { return Poll::Ready(Ok(())) };
        let outcome = ready!(Pin::new(writer).poll_shutdown(cx));
        self.writer = None;
        Poll::Ready(outcome)
    }
}
