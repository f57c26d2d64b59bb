use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};

use super::alarm::Alarm;
use super::sending::PROGRESS_BYTES;
use crate::Runtime;

/// A connection that does not wait for its client for ever: neither for it to take what it is sent,
/// nor for it to see the end. A listener speaks HTTP/1 or HTTP/2 over it.
#[derive(Debug)]
pub struct Socket<S, R> {
    stream: S,
    runtime: R,
    stall_time: Duration,
    /// What was read of it already, and is read once more.
    begun: Vec<u8>,
    /// Runs while the client has yet to take what is there for it, or enough of it.
    stalled: Option<Stalled>,
    /// Runs once everything is sent.
    parting: Option<Parting>,
}

/// The time in which a client has to take [`PROGRESS_BYTES`], or all there is for it.
#[derive(Debug)]
struct Stalled {
    until: Alarm,
    /// Bytes taken.
    taken: usize,
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
    /// One whose client has to take all that there is for it within `stall_time`, or 16 KiB of it.
    /// Writing fails otherwise.
    pub const fn new(stream: S, runtime: R, stall_time: Duration) -> Self {
        Self { stream, runtime, stall_time, begun: Vec::new(), stalled: None, parting: None }
    }

    /// The same of a stream whose first bytes were read: whoever serves it reads them once more.
    #[must_use]
    pub fn begun(mut self, first: Vec<u8>) -> Self {
        self.begun = first;
        self
    }

    /// What came of a write, unless the client has taken too little for too long.
    fn watched(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let Self { runtime, stall_time, stalled, .. } = self;
        match written {
            Poll::Ready(Ok(count)) => {
                if let Some(running) = stalled {
                    running.taken += count;
                    if running.taken >= PROGRESS_BYTES {
                        *stalled = None;
                    }
                }
                written
            }
            Poll::Ready(Err(_)) => written,
            Poll::Pending => {
                let running = stalled.get_or_insert_with(|| Stalled {
                    until: Alarm::after(*stall_time, runtime),
                    taken: 0,
                });
                ready!(running.until.poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
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

    // hyper flushes when it has written all that it has.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.stalled = None;
        }
        flushed
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
mod tests;
