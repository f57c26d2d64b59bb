use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mcp_sansio_async::ByteStream;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use crate::descriptor::Descriptor;
use crate::executor::reactor::{self, Direction};

/// A stream over two descriptors, or over one for both directions: pipes and sockets.
///
/// They are in non-blocking mode until the stream is dropped, which restores their mode. Poll the
/// stream within [`block_on`](crate::block_on), whose thread then waits for both directions at
/// once; elsewhere an operation that would block fails.
///
/// It is not suitable for regular files, which do not support readiness, nor for terminals, whose
/// mode is shared with other programs: use [`ThreadedStream`](crate::ThreadedStream) for those.
#[derive(Debug)]
pub struct FdStream {
    reader: Half,
    /// `None` once it is closed.
    writer: Option<Half>,
}

#[derive(Debug)]
struct Half {
    descriptor: Arc<Descriptor>,
    direction: Direction,
    readiness: Readiness,
}

/// Whether to try the next read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    /// It is likely to succeed.
    Likely,
    /// The last one was short: the next one would probably block, at the cost of a system call.
    Unlikely,
    /// The reactor is watching the descriptor.
    Awaited,
}

impl FdStream {
    /// Creates a stream that reads from `reader` and writes to `writer`. The descriptors may refer
    /// to the same file.
    ///
    /// # Errors
    ///
    /// The system cannot make them non-blocking.
    pub fn new(reader: impl Into<OwnedFd>, writer: impl Into<OwnedFd>) -> io::Result<Self> {
        let reader = Half::new(Arc::new(Descriptor::new(reader.into())?), Direction::Read);
        let writer = Half::new(Arc::new(Descriptor::new(writer.into())?), Direction::Write);
        Ok(Self { reader, writer: Some(writer) })
    }

    /// Creates a stream that reads from `descriptor` and writes to it.
    ///
    /// # Errors
    ///
    /// The system cannot make it non-blocking.
    pub fn duplex(descriptor: impl Into<OwnedFd>) -> io::Result<Self> {
        let descriptor = Arc::new(Descriptor::new(descriptor.into())?);
        let writer = Half::new(Arc::clone(&descriptor), Direction::Write);
        Ok(Self { reader: Half::new(descriptor, Direction::Read), writer: Some(writer) })
    }

    /// Creates a stream that reads from `reader` and writes to `writer` and leaves them in blocking
    /// mode, as others share them: a terminal, or a descriptor that is also the standard error. An
    /// operation is only tried once the system reports it as ready, which it always does for
    /// regular files. A terminal that is stopped in the middle of a write blocks the thread until
    /// it resumes.
    #[cfg(any(target_os = "android", target_os = "linux"))]
    pub(crate) fn shared(reader: OwnedFd, writer: OwnedFd) -> Self {
        let reader = Half::new(Arc::new(Descriptor::shared(reader)), Direction::Read);
        let writer = Half::new(Arc::new(Descriptor::shared(writer)), Direction::Write);
        Self { reader, writer: Some(writer) }
    }

    /// Creates a stream that only reads from `descriptor`.
    #[cfg(feature = "client")]
    pub(crate) fn reading(descriptor: impl Into<OwnedFd>) -> io::Result<Self> {
        let descriptor = Arc::new(Descriptor::new(descriptor.into())?);
        Ok(Self { reader: Half::new(descriptor, Direction::Read), writer: None })
    }
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
        let wanted = buffer.len();
        self.reader.poll(cx, wanted, |descriptor| rustix::io::read(descriptor, &mut *buffer))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Some(writer) = &mut self.writer else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let bytes = &bytes[..bytes.len().min(writer.descriptor.write_max())];
        writer.poll(cx, bytes.len(), |descriptor| rustix::io::write(descriptor, bytes))
    }

    /// Nothing is buffered.
    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(writer) = self.writer.take() else { return Poll::Ready(Ok(())) };
        if writer.descriptor.is_shared() {
            return Poll::Ready(Ok(()));
        }
        // Shut down a socket, since it may be open elsewhere, at least for reading. Anything else
        // closes when it is dropped, and a disconnected peer needs no shutdown.
        Poll::Ready(match shutdown(&*writer.descriptor, Shutdown::Write) {
            Ok(()) | Err(Errno::NOTSOCK | Errno::NOTCONN) => Ok(()),
            Err(error) => Err(error.into()),
        })
    }
}

impl Half {
    fn new(descriptor: Arc<Descriptor>, direction: Direction) -> Self {
        let readiness =
            if descriptor.is_shared() { Readiness::Unlikely } else { Readiness::Likely };
        Self { descriptor, direction, readiness }
    }

    /// Tries `action`, which moves up to `wanted` bytes, once it is likely to succeed.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        wanted: usize,
        mut action: impl FnMut(&Descriptor) -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_ready(cx))?;
        loop {
            match action(&self.descriptor) {
                // The end of the input is permanent, so there is nothing to wait for.
                Ok(count) => {
                    if self.descriptor.is_shared() || (count > 0 && count < wanted) {
                        self.readiness = Readiness::Unlikely;
                    }
                    return Poll::Ready(Ok(count));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.readiness = Readiness::Unlikely;
                    return self.poll_ready(cx).map_ok(|()| 0);
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.readiness {
            Readiness::Likely => Poll::Ready(Ok(())),
            Readiness::Awaited
                if reactor::is_watched(&self.descriptor, self.direction, cx.waker()) =>
            {
                Poll::Pending
            }
            Readiness::Awaited => {
                self.readiness = Readiness::Likely;
                Poll::Ready(Ok(()))
            }
            Readiness::Unlikely => {
                if !reactor::watch(&self.descriptor, self.direction, cx.waker()) {
                    let reason = "an `FdStream` can wait only inside of `mcp_sansio_std::block_on`";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::Unsupported, reason)));
                }
                self.readiness = Readiness::Awaited;
                Poll::Pending
            }
        }
    }
}

/// Waits until the descriptor is readable, or can accept.
#[cfg(any(feature = "auth", feature = "http-server"))]
pub(crate) async fn readable(descriptor: &Arc<Descriptor>) -> io::Result<()> {
    let mut half = Half::new(Arc::clone(descriptor), Direction::Read);
    half.readiness = Readiness::Unlikely;
    std::future::poll_fn(|cx| half.poll_ready(cx)).await
}

impl Drop for Half {
    fn drop(&mut self) {
        if self.readiness == Readiness::Awaited {
            // The reactor keeps the descriptor open.
            reactor::forget(&self.descriptor, self.direction);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{Read, Write, pipe};
    use std::task::Waker;

    use super::*;
    use crate::block_on;

    fn blocks(descriptor: impl std::os::fd::AsFd) -> bool {
        crate::descriptor::blocks(descriptor).unwrap()
    }

    #[test]
    fn one_socket_serves_both_ways_and_closes_one() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut stream = FdStream::try_from(here).unwrap();
        there.write_all(b"in").unwrap();
        let mut buffer = [0; 9];
        let read = block_on(poll_fn(|cx| stream.poll_read(cx, &mut buffer))).unwrap().unwrap();
        assert_eq!(&buffer[..read], b"in");
        assert_eq!(block_on(poll_fn(|cx| stream.poll_write(cx, b"out"))).unwrap().unwrap(), 3);
        block_on(poll_fn(|cx| stream.poll_close(cx))).unwrap().unwrap();
        block_on(poll_fn(|cx| stream.poll_close(cx))).unwrap().unwrap();
        let mut rest = String::new();
        there.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "out");
        there.write_all(b"still").unwrap();
        let read = block_on(poll_fn(|cx| stream.poll_read(cx, &mut buffer))).unwrap().unwrap();
        assert_eq!(&buffer[..read], b"still");
        let write = block_on(poll_fn(|cx| stream.poll_write(cx, b"x"))).unwrap();
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
        let written = block_on(async {
            let mut written = 0;
            let mut context = Context::from_waker(Waker::noop());
            while let Poll::Ready(count) = stream.poll_write(&mut context, &[7; 4096]) {
                written += count.unwrap();
            }
            written
        });
        let written = written.unwrap();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut reader = to.0;
            reader.read_to_end(&mut bytes).map(|_| bytes.len())
        });
        let more = block_on(poll_fn(|cx| stream.poll_write(cx, &[7; 10]))).unwrap().unwrap();
        block_on(poll_fn(|cx| stream.poll_close(cx))).unwrap().unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), written + more);
    }

    #[cfg(any(target_os = "android", target_os = "linux"))]
    #[test]
    fn shared_descriptors_stay_blocking_and_are_used_only_when_ready() {
        let (to, mut from) = (pipe().unwrap(), pipe().unwrap());
        let (reader, writer) = (from.0.try_clone().unwrap(), to.1.try_clone().unwrap());
        let mut stream = FdStream::shared(reader.into(), writer.into());
        assert!(blocks(&from.0) && blocks(&to.1));
        let mut buffer = [0; 9];
        let is_read = block_on(poll_fn(|cx| {
            let read = stream.poll_read(cx, &mut buffer);
            Poll::Ready(read.is_ready())
        }));
        assert!(!is_read.unwrap(), "a read would block");
        from.1.write_all(b"in").unwrap();
        let read = block_on(poll_fn(|cx| stream.poll_read(cx, &mut buffer))).unwrap().unwrap();
        assert_eq!(&buffer[..read], b"in");

        let bytes = [7; 100_000];
        let filled = {
            let full = FdStream::new(from.0, to.1.try_clone().unwrap());
            let mut context = Context::from_waker(Waker::noop());
            full.unwrap().poll_write(&mut context, &bytes)
        };
        let Poll::Ready(Ok(filled)) = filled else { panic!("an empty pipe takes some") };
        let is_written =
            block_on(poll_fn(|cx| Poll::Ready(stream.poll_write(cx, b"out").is_ready())));
        assert!(!is_written.unwrap(), "a write would block");
        let mut far = to.0;
        far.read_exact(&mut vec![0; filled]).unwrap();
        let written = block_on(poll_fn(|cx| stream.poll_write(cx, &bytes))).unwrap().unwrap();
        assert_eq!(written, 4096, "a writable pipe has space for that");
        assert!(stream.poll_close(&mut Context::from_waker(Waker::noop())).is_ready());
        assert!(blocks(&to.1));
    }

    #[test]
    fn waiting_outside_of_block_on_is_an_error_that_says_so() {
        let (from, to) = (pipe().unwrap(), pipe().unwrap());
        let mut stream = FdStream::new(from.0, to.1).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Err(error)) = stream.poll_read(&mut context, &mut [0; 1]) else { panic!() };
        assert!(error.to_string().contains("block_on"), "{error}");
    }
}
