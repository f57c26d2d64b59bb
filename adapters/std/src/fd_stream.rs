use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_io::Async;
use futures_lite::{AsyncRead, AsyncWrite};
use mcp_sansio_async::{ByteStream, descriptor};

type Descriptor = descriptor::Descriptor<Async<File>>;

/// A stream over two descriptors, or over one for both directions: pipes and sockets.
///
/// They are in non-blocking mode until the stream is dropped, which restores their mode.
///
/// It is not suitable for regular files, which do not support readiness, nor for terminals, whose
/// mode is shared with other programs: use [`ThreadedStream`](crate::ThreadedStream) for those.
#[derive(Debug)]
pub struct FdStream {
    reader: Arc<Descriptor>,
    /// `None` once it is closed.
    writer: Option<Arc<Descriptor>>,
}

impl FdStream {
    /// Creates a stream that reads from `reader` and writes to `writer`. The descriptors may refer
    /// to the same file.
    ///
    /// # Errors
    ///
    /// The system cannot make them non-blocking, or wait for them.
    pub fn new(reader: impl Into<OwnedFd>, writer: impl Into<OwnedFd>) -> io::Result<Self> {
        let reader = open(reader.into())?;
        Ok(Self { reader, writer: Some(open(writer.into())?) })
    }

    /// Creates a stream that reads from `descriptor` and writes to it.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn duplex(descriptor: impl Into<OwnedFd>) -> io::Result<Self> {
        let reader = open(descriptor.into())?;
        Ok(Self { writer: Some(Arc::clone(&reader)), reader })
    }
}

fn open(descriptor: OwnedFd) -> io::Result<Arc<Descriptor>> {
    let register = |descriptor| Async::new_nonblocking(File::from(descriptor));
    Descriptor::new(descriptor, register).map(Arc::new)
}

impl TryFrom<TcpStream> for FdStream {
    type Error = io::Error;

    /// Sends small messages at once (`TCP_NODELAY`), since the driver already batches its output.
    fn try_from(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Self::duplex(stream)
    }
}

impl TryFrom<UnixStream> for FdStream {
    type Error = io::Error;

    fn try_from(stream: UnixStream) -> io::Result<Self> {
        Self::duplex(stream)
    }
}

impl ByteStream for FdStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.reader.get()).poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &self.writer {
            Some(writer) => Pin::new(&mut writer.get()).poll_write(cx, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Nothing is buffered.
    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(writer) = self.writer.take() else { return Poll::Ready(Ok(())) };
        // Shut down a socket, since it may be open elsewhere, at least for reading. Anything else
        // closes when it is dropped, and a disconnected peer needs no shutdown.
        Poll::Ready(match writer.close_output() {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(error),
            _ => Ok(()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{Read, Write, pipe};
    use std::os::fd::AsFd;
    use std::task::Waker;

    use rustix::fs::{OFlags, fcntl_getfl};

    use super::*;
    use crate::block_on;

    fn blocks(descriptor: impl AsFd) -> bool {
        !fcntl_getfl(descriptor).unwrap().contains(OFlags::NONBLOCK)
    }

    #[test]
    fn one_socket_serves_both_ways_and_closes_one() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut stream = FdStream::try_from(here).unwrap();
        there.write_all(b"in").unwrap();
        let mut buffer = [0; 9];
        let read = block_on(poll_fn(|cx| stream.poll_read(cx, &mut buffer))).unwrap();
        assert_eq!(&buffer[..read], b"in");
        assert_eq!(block_on(poll_fn(|cx| stream.poll_write(cx, b"out"))).unwrap(), 3);
        block_on(poll_fn(|cx| stream.poll_close(cx))).unwrap();
        block_on(poll_fn(|cx| stream.poll_close(cx))).unwrap();
        let mut rest = String::new();
        there.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "out");
        there.write_all(b"still").unwrap();
        let read = block_on(poll_fn(|cx| stream.poll_read(cx, &mut buffer))).unwrap();
        assert_eq!(&buffer[..read], b"still");
        let write = block_on(poll_fn(|cx| stream.poll_write(cx, b"x")));
        assert_eq!(write.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn descriptors_that_others_share_block_again_afterwards() {
        let (from, to) = (pipe().unwrap(), pipe().unwrap());
        let (reader, writer) = (from.0.try_clone().unwrap(), to.1.try_clone().unwrap());
        let stream = FdStream::new(reader, writer).unwrap();
        assert!(!blocks(&from.0) && !blocks(&to.1));
        drop(stream);
        assert!(blocks(&from.0) && blocks(&to.1));

        let (socket, _there) = UnixStream::pair().unwrap();
        let twice = (socket.try_clone().unwrap(), socket.try_clone().unwrap());
        let mut stream = FdStream::new(twice.0, twice.1).unwrap();
        assert!(stream.poll_close(&mut Context::from_waker(Waker::noop())).is_ready());
        assert!(!blocks(&socket), "the read half is in use");
        drop(stream);
        assert!(blocks(&socket));
    }

    #[test]
    fn a_full_pipe_is_waited_for_and_closing_it_shows() {
        let (to, from) = (pipe().unwrap(), pipe().unwrap());
        let mut stream = FdStream::new(from.0, to.1).unwrap();
        let mut written = 0;
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(count) = stream.poll_write(&mut context, &[7; 4096]) {
            written += count.unwrap();
        }
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut reader = to.0;
            reader.read_to_end(&mut bytes).map(|_| bytes.len())
        });
        let more = block_on(poll_fn(|cx| stream.poll_write(cx, &[7; 10]))).unwrap();
        block_on(poll_fn(|cx| stream.poll_close(cx))).unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), written + more);
    }
}
