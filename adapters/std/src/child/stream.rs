use std::io;
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_sansio_async::ByteStream;

use crate::PipeStream;

/// The stream to a child: what it writes to its standard output, and what it reads from its
/// standard input.
///
/// It ends, both ways, when the child is shut down. For that it has to be polled; one that nobody
/// polls any more should be dropped first.
#[derive(Debug)]
pub struct ChildStream {
    stream: PipeStream,
    hangup: Arc<Hangup>,
}

/// How the other thread says that the connection is over.
#[derive(Debug, Default)]
pub(super) struct Hangup {
    over: AtomicBool,
    /// Who waits for something to read.
    waker: Mutex<Option<Waker>>,
}

impl ChildStream {
    pub(super) fn new(stdout: ChildStdout, stdin: ChildStdin) -> io::Result<Self> {
        let stream = PipeStream::child(stdout, stdin)?;
        Ok(Self { stream, hangup: Arc::default() })
    }

    pub(super) fn hangup(&self) -> Arc<Hangup> {
        Arc::clone(&self.hangup)
    }
}

impl Hangup {
    pub(super) fn hang_up(&self) {
        self.over.store(true, Ordering::SeqCst);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Whether it is over; if not, the task is woken when it is.
    fn poll_over(&self, cx: &Context<'_>) -> bool {
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
        drop(waker);
        self.is_over()
    }
}

impl ByteStream for ChildStream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if !self.hangup.is_over() {
            let read = self.stream.poll_read(cx, buffer);
            if read.is_ready() || !self.hangup.poll_over(cx) {
                return read;
            }
        }
        // The child reads the end of its input now, not when the driver is done with what it has.
        self.stream.poll_close(cx).map_ok(|()| 0)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.hangup.is_over() {
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
