use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mcp_sansio_async::http_server::StallGuard;
use mcp_sansio_async::{ByteStream, Runtime as _};

use crate::PipeStream;
use crate::runtime::ThreadRuntime;

/// The most unread input that is buffered, in bytes: limits the longest head and the data after it.
const INPUT_MAX: usize = 64 * 1024;
/// Bytes per read.
const READ_BYTES: usize = 8 * 1024;

/// A connection with its input buffer, and time limits for its client.
#[derive(Debug)]
pub(super) struct Socket {
    stream: PipeStream,
    /// Input that has been received but not taken.
    input: Vec<u8>,
    ended: bool,
    stall: StallGuard<ThreadRuntime>,
}

impl Socket {
    pub(super) fn new(stream: PipeStream, stall_timeout: Duration) -> Self {
        let stall = StallGuard::new(ThreadRuntime::current(), stall_timeout);
        Self { stream, input: Vec::new(), ended: false, stall }
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
    /// The input has ended, or the buffer is full: [`io::ErrorKind::OutOfMemory`].
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

    /// Waits for the line that begins at `start` and has at most `most` bytes. Returns its end,
    /// line ending included.
    ///
    /// # Errors
    ///
    /// As [`poll_fill`](Self::poll_fill); [`io::ErrorKind::InvalidData`] if it is too long, or does
    /// not end in CRLF. RFC 9112 section 2.2 allows a bare LF as a line ending, but a proxy before
    /// this server may not accept it.
    pub(super) fn poll_line(
        &mut self,
        cx: &mut Context<'_>,
        start: usize,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        loop {
            let rest = &self.input[start..];
            match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) if end < most && rest[..end].ends_with(b"\r") => {
                    return Poll::Ready(Ok(start + end + 1));
                }
                None if rest.len() < most => ready!(self.poll_fill(cx))?,
                _ => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            }
        }
    }

    /// Waits until the client disconnects. Only reading detects that, so this reads ahead as far as
    /// the buffer allows.
    pub(super) fn poll_disconnect(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.input.len() < INPUT_MAX {
            if ready!(self.poll_fill(cx)).is_err() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Writes some of `bytes`, without a time limit.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.poll_write(cx, bytes)
    }

    /// Writes all of `bytes`, unless the client reads too little for too long.
    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let Self { stream, stall, .. } = self;
        poll_fn(|cx| {
            while !bytes.is_empty() {
                let written = stream.poll_write(cx, bytes);
                match ready!(stall.check(cx, written))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    count => bytes = &bytes[count..],
                }
            }
            stall.reset();
            stream.poll_flush(cx)
        })
        .await
    }

    /// Closes the connection, and lingers until the client has read everything.
    pub(super) async fn linger(mut self) {
        let mut lingering = self.stall.linger(self.input.len());
        poll_fn(|cx| {
            let _ended = ready!(self.stream.poll_close(cx));
            if self.ended {
                return Poll::Ready(());
            }
            lingering.poll(cx, |cx, space| self.stream.poll_read(cx, space))
        })
        .await;
    }
}
