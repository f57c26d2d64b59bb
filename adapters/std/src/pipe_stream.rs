use std::net::TcpStream;
use std::process::{ChildStdin, ChildStdout};
use std::task::{Context, Poll};
use std::{fmt, io};

use mcp_sansio_async::ByteStream;
use mcp_sansio_async::async_io::StandardStreams;

#[cfg(unix)]
use crate::FdStream;
use crate::ThreadedStream;

/// A socket, or the standard streams of this process or a child. Pipes and sockets are waited for
/// on the thread that uses them; anything else has a thread for each direction.
// Boxed, so that a program without threads contains no code for them.
pub struct PipeStream(Box<dyn ByteStream + Send>);

impl PipeStream {
    /// Creates a stream that reads from the standard input and writes to the standard output of
    /// this process.
    ///
    /// Both remain open when the stream is dropped. Meanwhile, output of other code goes to the
    /// standard error: see [`serve_stdio`](crate::serve_stdio).
    ///
    /// # Errors
    ///
    /// One of the streams is closed.
    pub fn stdio() -> io::Result<Self> {
        #[cfg(unix)]
        for descriptor in [rustix::stdio::stdin(), rustix::stdio::stdout()] {
            rustix::io::fcntl_getfd(descriptor)?;
        }
        Ok(Self(Box::new(StandardStreams::open())))
    }

    /// Creates a stream over the standard output and input of a child.
    ///
    /// # Errors
    ///
    /// The system cannot wait for them.
    pub fn child(stdout: ChildStdout, stdin: ChildStdin) -> io::Result<Self> {
        #[cfg(unix)]
        return FdStream::new(stdout, stdin).map(Self::from);
        #[cfg(not(unix))]
        Ok(ThreadedStream::new(stdout, stdin).into())
    }
}

#[cfg(unix)]
impl From<FdStream> for PipeStream {
    fn from(stream: FdStream) -> Self {
        Self(Box::new(stream))
    }
}

impl From<ThreadedStream> for PipeStream {
    fn from(stream: ThreadedStream) -> Self {
        Self(Box::new(stream))
    }
}

impl TryFrom<TcpStream> for PipeStream {
    type Error = io::Error;

    /// Sends small messages at once (`TCP_NODELAY`), since the driver already batches its output.
    fn try_from(stream: TcpStream) -> io::Result<Self> {
        #[cfg(unix)]
        return FdStream::try_from(stream).map(Self::from);
        #[cfg(not(unix))]
        {
            let socket = async_io::Async::new(stream)?;
            Ok(Self(Box::new(mcp_sansio_async::async_io::Socket::tcp(socket.into()))))
        }
    }
}

#[cfg(unix)]
impl TryFrom<std::os::unix::net::UnixStream> for PipeStream {
    type Error = io::Error;

    fn try_from(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        FdStream::try_from(stream).map(Self::from)
    }
}

impl ByteStream for PipeStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_close(cx)
    }
}

impl fmt::Debug for PipeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipeStream").finish_non_exhaustive()
    }
}
