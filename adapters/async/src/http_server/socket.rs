use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};

use super::Runtime;
use super::alarm::Alarm;

/// A connection that does not wait for its client for ever: neither for it to take something, nor
/// for it to see the end. A listener speaks HTTP/1 or HTTP/2 over it.
#[derive(Debug)]
pub struct Socket<S, R> {
    stream: S,
    runtime: R,
    stall_time: Duration,
    /// What was read of it already, and is read once more.
    begun: Vec<u8>,
    /// Runs while the client takes nothing of what is there for it.
    stalled: Option<Alarm>,
    /// Runs once everything is sent.
    parting: Option<Parting>,
}

/// To close a socket with bytes that nobody has read makes the system reset the connection, and
/// with it goes a response that the client has not read yet, because it is still sending. So what
/// it sends is read for a while.
#[derive(Debug)]
struct Parting {
    until: Alarm,
    bytes: usize,
}

/// The longest parting: more than a round trip, and nothing that adds up.
const PARTING_TIME: Duration = Duration::from_secs(2);
const PARTING_BYTES: usize = 8 * 1024 * 1024;

impl<S, R: Runtime> Socket<S, R> {
    /// One whose client may take nothing for `stall_time`. Writing fails after that.
    pub const fn new(stream: S, runtime: R, stall_time: Duration) -> Self {
        Self { stream, runtime, stall_time, begun: Vec::new(), stalled: None, parting: None }
    }

    /// The same of a stream whose first bytes were read: whoever serves it reads them once more.
    #[must_use]
    pub fn begun(mut self, first: Vec<u8>) -> Self {
        self.begun = first;
        self
    }

    /// What came of a write, unless there have been none for too long.
    fn watched<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let Self { runtime, stall_time, stalled, .. } = self;
        let stalled = stalled.get_or_insert_with(|| Alarm::after(*stall_time, runtime));
        ready!(stalled.poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Reads what still comes, up to the end.
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<()>
    where
        S: Read + Unpin,
    {
        let Self { stream, runtime, parting, .. } = self;
        let parting = parting.get_or_insert_with(|| Parting {
            until: Alarm::after(PARTING_TIME, runtime),
            bytes: 0,
        });
        let mut space = [0; 8192];
        while parting.bytes < PARTING_BYTES {
            let mut space = ReadBuf::new(&mut space);
            match Pin::new(&mut *stream).poll_read(cx, space.unfilled()) {
                Poll::Ready(Ok(())) if !space.filled().is_empty() => {
                    parting.bytes += space.filled().len();
                }
                Poll::Ready(_) => return Poll::Ready(()),
                // A client that is sending has something on the way.
                Poll::Pending if parting.bytes == 0 => return Poll::Ready(()),
                Poll::Pending => return parting.until.poll(cx),
            }
        }
        Poll::Ready(())
    }
}

impl<S: Read + Unpin, R: Unpin> Read for Socket<S, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut space: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.begun.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, space);
        }
        let length = self.begun.len().min(space.remaining());
        space.put_slice(&self.begun[..length]);
        self.begun.drain(..length);
        if self.begun.is_empty() {
            self.begun = Vec::new();
            // What follows comes with it: hyper would make room for a second read of full length,
            // which an idle connection holds. What is no bytes comes again with the next read.
            let _more = Pin::new(&mut self.stream).poll_read(cx, space);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: Read + Write + Unpin, R: Runtime + Unpin> Write for Socket<S, R> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watched(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.watched(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.parting.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        ready!(self.poll_part(cx));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use mcp_sansio::Instant;

    use super::*;
    use crate::Timer;
    use crate::http_server::Task;

    #[derive(Debug)]
    struct Still;

    impl Runtime for Still {
        fn now(&self) -> Instant {
            Instant::ZERO
        }

        fn timer(&self) -> Box<dyn Timer + Send> {
            unreachable!("nothing is waited for")
        }

        fn spawn(&self, _: Task) {
            unreachable!("nothing is spawned")
        }
    }

    /// What can be read at once, and then nothing more for now.
    struct Arrived(&'static [u8]);

    impl Read for Arrived {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            mut space: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            let (now, later) = self.0.split_at(self.0.len().min(space.remaining()));
            if now.is_empty() {
                return Poll::Pending;
            }
            space.put_slice(now);
            self.0 = later;
            Poll::Ready(Ok(()))
        }
    }

    fn reads(stream: Arrived, begun: &[u8], space: usize) -> Vec<Vec<u8>> {
        let mut socket = Socket::new(stream, Still, Duration::ZERO).begun(begun.to_vec());
        let mut cx = Context::from_waker(Waker::noop());
        let mut reads = Vec::new();
        loop {
            let mut space = vec![0; space];
            let mut space = ReadBuf::new(&mut space);
            match Pin::new(&mut socket).poll_read(&mut cx, space.unfilled()) {
                Poll::Ready(read) => read.unwrap(),
                Poll::Pending => return reads,
            }
            reads.push(space.filled().to_vec());
        }
    }

    #[test]
    fn what_was_read_already_comes_first_and_together_with_what_follows() {
        assert_eq!(reads(Arrived(b" /mcp"), b"POST", 16), [b"POST /mcp"]);
        assert_eq!(reads(Arrived(b""), b"POST", 16), [b"POST"]);
        assert_eq!(reads(Arrived(b" /mcp"), b"", 16), [b" /mcp"]);
        assert_eq!(reads(Arrived(b" /mcp"), b"POST", 3), [&b"POS"[..], b"T /", b"mcp"]);
        assert_eq!(reads(Arrived(b" /mcp"), b"POST", 4), [&b"POST"[..], b" /mc", b"p"]);
    }
}
