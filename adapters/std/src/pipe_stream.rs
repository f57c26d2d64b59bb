use std::fmt;
use std::io;
use std::net::TcpStream;
#[cfg(feature = "client")]
use std::process::ChildStderr;
use std::process::{ChildStdin, ChildStdout};
use std::task::{Context, Poll};

use mcp_sansio_async::ByteStream;

#[cfg(unix)]
use crate::FdStream;
use crate::ThreadedStream;
#[cfg(unix)]
use crate::descriptor::{blocks, is_pollable};

/// A socket, or the standard streams of this process or a child. One thread waits for everything
/// that the operating system can watch; anything else has a thread for each direction. Linux can
/// watch all of them, including terminals and files.
// Boxed, so that a program without threads contains no code for them.
pub struct PipeStream(Box<dyn ByteStream + Send + Sync>);

impl PipeStream {
    /// Creates a stream that reads from the standard input and writes to the standard output of
    /// this process.
    ///
    /// Both remain open when the stream is dropped. Other code that reads from the input or writes
    /// to the output interferes; [`serve_stdio`](crate::serve_stdio) prevents that.
    ///
    /// # Errors
    ///
    /// One of the streams is closed, or the system is out of descriptors or threads.
    pub fn stdio() -> io::Result<Self> {
        #[cfg(unix)]
        {
            // The handles of the standard library are buffered.
            use rustix::stdio::{stderr, stdin, stdout};
            let open = || -> io::Result<_> {
                let reader = stdin().try_clone_to_owned()?;
                Ok((reader, stdout().try_clone_to_owned()?))
            };
            let could_block = blocks(stderr())?;
            let (reader, writer) = open()?;
            let stream = Self::from_descriptors(reader, writer)?;
            if could_block && !blocks(stderr())? {
                // The standard error is the same pipe, and its writers expect it to block.
                drop(stream);
                let (reader, writer) = open()?;
                return Self::shared(reader, writer);
            }
            Ok(stream)
        }
        #[cfg(not(unix))]
        Self::threaded(io::stdin(), io::stdout())
    }

    /// Creates a stream over the standard output and input of a child.
    ///
    /// # Errors
    ///
    /// The system is out of threads, where they are needed.
    pub fn child(stdout: ChildStdout, stdin: ChildStdin) -> io::Result<Self> {
        #[cfg(unix)]
        return FdStream::new(stdout, stdin).map(Self::from);
        #[cfg(not(unix))]
        return Self::threaded(stdout, stdin);
    }

    /// Creates a stream that reads the standard error of a child.
    #[cfg(feature = "client")]
    pub(crate) fn child_stderr(stderr: ChildStderr) -> io::Result<Self> {
        #[cfg(unix)]
        return FdStream::reading(stderr).map(Self::from);
        #[cfg(not(unix))]
        return Self::threaded(stderr, io::sink());
    }

    /// Creates a stream from two descriptors, in the way that suits both.
    #[cfg(unix)]
    pub(crate) fn from_descriptors(
        reader: std::os::fd::OwnedFd,
        writer: std::os::fd::OwnedFd,
    ) -> io::Result<Self> {
        if is_pollable(&reader)? && is_pollable(&writer)? {
            return FdStream::new(reader, writer).map(Self::from);
        }
        Self::shared(reader, writer)
    }

    /// Creates a stream over descriptors that must remain blocking.
    #[cfg(unix)]
    fn shared(reader: std::os::fd::OwnedFd, writer: std::os::fd::OwnedFd) -> io::Result<Self> {
        #[cfg(any(target_os = "android", target_os = "linux"))]
        return Ok(FdStream::shared(reader, writer).into());
        // Some systems cannot watch a terminal.
        #[cfg(not(any(target_os = "android", target_os = "linux")))]
        return Self::threaded(std::fs::File::from(reader), std::fs::File::from(writer));
    }

    #[cfg(not(any(target_os = "android", target_os = "linux")))]
    fn threaded(
        reader: impl io::Read + Send + 'static,
        writer: impl io::Write + Send + 'static,
    ) -> io::Result<Self> {
        ThreadedStream::new(reader, writer).map(Self::from)
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
            stream.set_nodelay(true)?;
            let writer = ClosingSocket(stream.try_clone()?);
            Self::threaded(stream, writer)
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

/// A socket whose write half is closed with this handle, even if there are other handles.
#[cfg(not(unix))]
struct ClosingSocket(TcpStream);

#[cfg(not(unix))]
impl io::Write for ClosingSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(not(unix))]
impl Drop for ClosingSocket {
    fn drop(&mut self) {
        // Fails if the peer has already disconnected.
        let _ = self.0.shutdown(std::net::Shutdown::Write);
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
