use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};

use super::stall::{LingeringClose, StallGuard};
use crate::Runtime;

/// A connection with a time limit for its client, both to read data and to see the end. A listener
/// speaks HTTP/1 or HTTP/2 over it.
#[derive(Debug)]
pub(super) struct Socket<S, R> {
    stream: S,
    /// Bytes that were already read, to be read again.
    prefix: Vec<u8>,
    stall: StallGuard<R>,
    /// Set once everything is sent.
    lingering: Option<LingeringClose>,
}

impl<S, R: Runtime> Socket<S, R> {
    /// Creates a socket whose client must read all pending data, or 16 KiB of it, within
    /// `stall_timeout`. Otherwise writing fails.
    pub(super) const fn new(stream: S, runtime: R, stall_timeout: Duration) -> Self {
        let stall = StallGuard::new(runtime, stall_timeout);
        Self { stream, prefix: Vec::new(), stall, lingering: None }
    }

    /// Prepends bytes that were already read from the stream.
    #[must_use]
    pub(super) fn with_prefix(mut self, first: Vec<u8>) -> Self {
        self.prefix = first;
        self
    }
}

impl<S: Read + Unpin, R: Unpin> Read for Socket<S, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut space: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.prefix.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, space);
        }
        let length = self.prefix.len().min(space.remaining());
        space.put_slice(&self.prefix[..length]);
        self.prefix.drain(..length);
        if self.prefix.is_empty() {
            self.prefix = Vec::new();
            // Read the rest as well: hyper would otherwise reserve space for a second full read,
            // which an idle connection keeps. An end or error recurs at the next read.
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
        self.stall.check(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.stall.check(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // hyper flushes when it has written everything.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.stall.reset();
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_close(cx, false)
    }
}

impl<S: Read + Write + Unpin, R: Runtime + Unpin> Socket<S, R> {
    /// Closes the connection. `client_sends` is whether the client may still be sending a request
    /// that is already answered.
    pub(super) fn poll_close(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        client_sends: bool,
    ) -> Poll<io::Result<()>> {
        let Self { stream, stall, lingering, .. } = &mut *self;
        if lingering.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(cx))?;
        }
        let lingering = lingering.get_or_insert_with(|| stall.linger(client_sends.into()));
        let read = |cx: &mut Context<'_>, space: &mut [u8]| {
            let mut space = ReadBuf::new(space);
            ready!(Pin::new(&mut *stream).poll_read(cx, space.unfilled()))?;
            Poll::Ready(Ok(space.filled().len()))
        };
        lingering.poll(cx, read).map(Ok)
    }
}

#[cfg(test)]
mod tests;
