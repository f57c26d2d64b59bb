use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use crate::ByteStream;

/// The standard output and input of a child process. Dropping it closes both.
#[derive(Debug)]
pub struct ChildStream<S>(Arc<Mutex<S>>);

/// Closes the input of a child process, independent of the task that drives its stream.
pub(super) struct InputCloser<S>(Weak<Mutex<S>>);

impl<S: ByteStream> ChildStream<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    pub(super) fn input_closer(&self) -> InputCloser<S> {
        InputCloser(Arc::downgrade(&self.0))
    }

    // A panic elsewhere leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, S> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> fmt::Debug for InputCloser<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InputCloser")
    }
}

impl<S: ByteStream> InputCloser<S> {
    /// Closes the child's input. Nothing can be written afterwards.
    pub(super) fn close(&self) {
        if let Some(stream) = self.0.upgrade() {
            // Closing a pipe does not block.
            let _ = ChildStream(stream).poll_close(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl<S: ByteStream> ByteStream for ChildStream<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.lock().poll_read(cx, buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.lock().poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lock().poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lock().poll_close(cx)
    }
}
