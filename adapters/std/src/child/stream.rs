use std::io;
use std::process::{ChildStdin, ChildStdout};
use std::task::{Context, Poll};

use mcp_sansio_async::ByteStream;

use crate::PipeStream;
use crate::stop::Stop;

/// The stream to a child: what it writes to its standard output, and what it reads from its
/// standard input.
///
/// It ends, both ways, when the child is shut down. For that it has to be polled; one that nobody
/// polls any more should be dropped first.
#[derive(Debug)]
pub struct ChildStream {
    stream: PipeStream,
    /// How the other thread says that the connection is over.
    stop: Stop,
}

impl ChildStream {
    pub(super) fn new(stdout: ChildStdout, stdin: ChildStdin) -> io::Result<Self> {
        let stream = PipeStream::child(stdout, stdin)?;
        Ok(Self { stream, stop: Stop::default() })
    }

    pub(super) fn stop(&self) -> Stop {
        self.stop.clone()
    }
}

impl ByteStream for ChildStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if !self.stop.is_stopped() {
            let read = self.stream.poll_read(cx, buffer);
            if read.is_ready() || !self.stop.poll_stopped(cx) {
                return read;
            }
        }
        // The child reads the end of its input now, not when the driver is done with what it has.
        self.stream.poll_close(cx).map_ok(|()| 0)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.stop.is_stopped() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.stream.poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_close(cx)
    }
}
