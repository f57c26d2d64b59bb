use std::fmt;
use std::io;
use std::net::TcpStream;
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::task::{Context, Poll};

use mcp_sansio_async::ByteStream;

#[cfg(unix)]
use crate::FdStream;
use crate::ThreadedStream;
#[cfg(unix)]
use crate::descriptor::{blocks, is_pollable};

/// The standard streams of this process or of a child, or a socket: whatever the operating system
/// can wait for is waited for on one thread, the rest has a thread for each way. Linux can wait for
/// all of them, terminals and files too.
// In a box, so that a program without threads has no code for them.
pub struct PipeStream(Box<dyn ByteStream + Send + Sync>);

impl PipeStream {
    /// Reads from the standard input and writes to the standard output of this process.
    ///
    /// Both remain open when the stream is dropped. What else reads from the one or writes to the
    /// other gets in the way; [`serve_stdio`](crate::serve_stdio) keeps it out.
    ///
    /// # Errors
    ///
    /// One of them is closed, or the system is out of descriptors or threads.
    pub fn stdio() -> io::Result<Self> {
        #[cfg(unix)]
        {
            // The standard library's would come with their buffers.
            use rustix::stdio::{stderr, stdin, stdout};
            let open = || -> io::Result<_> {
                let reader = stdin().try_clone_to_owned()?;
                Ok((reader, stdout().try_clone_to_owned()?))
            };
            let could_block = blocks(stderr())?;
            let (reader, writer) = open()?;
            let stream = Self::from_descriptors(reader, writer)?;
            if could_block && !blocks(stderr())? {
                // The standard error is the same pipe, and whoever writes there expects to wait.
                drop(stream);
                let (reader, writer) = open()?;
                return Self::shared(reader, writer);
            }
            Ok(stream)
        }
        #[cfg(not(unix))]
        Self::threaded(io::stdin(), io::stdout())
    }

    /// Reads what a child writes and writes what it reads.
    ///
    /// # Errors
    ///
    /// The system is out of threads, where it needs them for this.
    pub fn child(stdout: ChildStdout, stdin: ChildStdin) -> io::Result<Self> {
        #[cfg(unix)]
        return FdStream::new(stdout, stdin).map(Self::from);
        #[cfg(not(unix))]
        return Self::threaded(stdout, stdin);
    }

    /// Only reads what a child writes to its standard error.
    pub(crate) fn child_stderr(stderr: ChildStderr) -> io::Result<Self> {
        #[cfg(unix)]
        return FdStream::reading(stderr).map(Self::from);
        #[cfg(not(unix))]
        return Self::threaded(stderr, io::sink());
    }

    /// Reads from one descriptor and writes to another, by the means that fit both.
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

    /// Reads and writes what has to go on blocking.
    #[cfg(unix)]
    fn shared(reader: std::os::fd::OwnedFd, writer: std::os::fd::OwnedFd) -> io::Result<Self> {
        #[cfg(any(target_os = "android", target_os = "linux"))]
        return Ok(FdStream::shared(reader, writer).into());
        // Some systems cannot wait for a terminal.
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

    /// Small messages leave at once (`TCP_NODELAY`): what can be put together has been.
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

/// A socket whose writing half is closed with this handle, though there are others.
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
        // The other side may have gone already, and need not be told.
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
