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
    line_search: LineSearch,
    stall: StallGuard<ThreadRuntime>,
}

/// Finds the end of a line that arrives in parts, without searching a part twice.
#[derive(Debug, Default)]
struct LineSearch {
    /// Where the search began, and the position before which there is no end.
    start: usize,
    searched: usize,
}

impl LineSearch {
    /// Returns the position of the line feed at the end of the line that begins at `start`.
    fn find(&mut self, input: &[u8], start: usize) -> Option<usize> {
        let from = if start == self.start { self.searched.max(start) } else { start };
        let found = input[from..].iter().position(|byte| *byte == b'\n').map(|at| from + at);
        let searched = if found.is_some() { start } else { input.len() };
        *self = Self { start, searched };
        found
    }
}

impl Socket {
    pub(super) fn new(stream: PipeStream, stall_timeout: Duration) -> Self {
        let stall = StallGuard::new(ThreadRuntime::current(), stall_timeout);
        let line_search = LineSearch::default();
        Self { stream, input: Vec::new(), ended: false, line_search, stall }
    }

    pub(super) fn input(&self) -> &[u8] {
        &self.input
    }

    /// Takes the first `count` bytes of the input.
    pub(super) fn take(&mut self, count: usize) -> Vec<u8> {
        self.line_search = LineSearch::default();
        let rest = self.input.split_off(count);
        std::mem::replace(&mut self.input, rest)
    }

    /// Drops the first `count` bytes of the input.
    pub(super) fn skip(&mut self, count: usize) {
        self.line_search = LineSearch::default();
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
            match self.line_search.find(&self.input, start) {
                Some(end) if end - start < most && self.input[start..end].ends_with(b"\r") => {
                    return Poll::Ready(Ok(end + 1));
                }
                None if self.input.len() - start < most => ready!(self.poll_fill(cx))?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_line_is_searched_twice() {
        let mut search = LineSearch::default();
        let mut input = b"GET / HTTP/1.1\r\nHost: local".to_vec();
        assert_eq!(search.find(&input, 0), Some(15));
        assert_eq!(search.find(&input, 16), None);
        // Bytes that were searched are not read again.
        input[18] = b'\n';
        assert_eq!(search.find(&input, 16), None);
        input.extend_from_slice(b"host\r\n");
        assert_eq!(search.find(&input, 16), Some(input.len() - 1));
        // Another line is searched from its start.
        assert_eq!(search.find(&input, 17), Some(18));
        assert_eq!(search.find(&input, 0), Some(15));
    }
}
