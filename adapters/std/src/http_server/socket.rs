use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mcp_sansio_async::{ByteStream, Timer};

use crate::{Clock, PipeStream, now};

/// What has come and waits to be read, at most, in bytes: the longest head with what follows it.
pub(super) const INPUT_MAX: usize = 64 * 1024;
/// What is read at once, in bytes.
const READ_BYTES: usize = 8 * 1024;

/// A client takes this much in the time that it may stall, or all there is for it. Otherwise a byte now
/// and then would hold a connection and its thread.
const PROGRESS_BYTES: usize = 16 * 1024;

/// The longest parting: more than a round trip, and nothing that adds up.
const PARTING_TIME: Duration = Duration::from_secs(2);
const PARTING_BYTES: usize = 8 * 1024 * 1024;

/// A connection with what has come of it, that does not wait for its client for ever.
#[derive(Debug)]
pub(super) struct Socket {
    stream: PipeStream,
    /// What has come and was not taken.
    input: Vec<u8>,
    ended: bool,
    stall_time: Duration,
}

impl Socket {
    pub(super) const fn new(stream: PipeStream, stall_time: Duration) -> Self {
        Self { stream, input: Vec::new(), ended: false, stall_time }
    }

    pub(super) fn input(&self) -> &[u8] {
        &self.input
    }

    /// Takes the first `count` bytes of the input.
    pub(super) fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.input.split_off(count);
        std::mem::replace(&mut self.input, rest)
    }

    /// Drops the first `count` bytes of the input.
    pub(super) fn skip(&mut self, count: usize) {
        self.input.drain(..count);
    }

    /// Waits for more input.
    ///
    /// # Errors
    ///
    /// There will be no more, or there is no room for it.
    pub(super) async fn fill(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_fill(cx)).await
    }

    /// As [`fill`](Self::fill).
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.input.len() >= INPUT_MAX {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        if self.ended {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let mut space = [0; READ_BYTES];
        let count = ready!(self.stream.poll_read(cx, &mut space))?;
        self.ended = count == 0;
        self.input.extend_from_slice(&space[..count]);
        if self.ended {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        Poll::Ready(Ok(()))
    }

    /// Whether the client has gone, which shows when something is read: so this reads ahead as far
    /// as there is room.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.input.len() < INPUT_MAX {
            if ready!(self.poll_fill(cx)).is_err() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Writes some of it, without an eye on the time.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.poll_write(cx, bytes)
    }

    /// Writes all of it, unless the client takes too little for too long.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (mut rest, mut clock) = (bytes, Clock::new());
        let (mut until, mut taken) = (now() + self.stall_time, 0);
        poll_fn(|cx| {
            while !rest.is_empty() {
                match self.stream.poll_write(cx, rest) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(count)) => {
                        rest = &rest[count..];
                        taken += count;
                        if taken >= PROGRESS_BYTES {
                            taken = 0;
                            until = now() + self.stall_time;
                        }
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        ready!(clock.poll_until(cx, until));
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    }
                }
            }
            self.stream.poll_flush(cx)
        })
        .await
    }

    /// Ends the connection. To close a socket with bytes that nobody has read makes the system reset
    /// it, and with it goes a response that the client has not read yet, because it is still
    /// sending. So what it sends is read for a while.
    pub(super) async fn part(mut self) {
        let (until, mut clock) = (now() + PARTING_TIME, Clock::new());
        let mut bytes = self.input.len();
        let mut space = [0; READ_BYTES];
        poll_fn(|cx| {
            let _ended = ready!(self.stream.poll_close(cx));
            while bytes < PARTING_BYTES && !self.ended {
                match self.stream.poll_read(cx, &mut space) {
                    Poll::Ready(Ok(count)) if count > 0 => bytes += count,
                    Poll::Ready(_) => break,
                    // A client that is sending has something on the way.
                    Poll::Pending if bytes == 0 => break,
                    Poll::Pending => return clock.poll_until(cx, until),
                }
            }
            Poll::Ready(())
        })
        .await;
    }
}
