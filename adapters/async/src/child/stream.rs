use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::{fmt, io};

use crate::{ByteStream, Runtime, task};

/// Bytes per read of output that is discarded.
const DISCARDED_CHUNK: usize = 4096;

/// The standard output and input of a child process.
///
/// The output also ends soon after the child has exited, even if another process holds the pipe.
/// Dropping the stream closes the input. The output is then read to its end and discarded, so that
/// the child can exit properly: many programs fail if they cannot write.
pub struct ChildStream<S>(Arc<Mutex<Shared<S>>>);

/// Controls the stream of a child process, independent of the task that drives it.
pub(super) struct StreamControl<S>(Weak<Mutex<Shared<S>>>);

struct Shared<S> {
    stream: S,
    output: Output,
    /// Discards the rest of the output. `None` once it does.
    discard: Option<Box<dyn FnOnce(ChildStream<S>) + Send>>,
}

enum Output {
    /// Open, with the task that waits for it.
    Open(Option<Waker>),
    /// The child has exited. Output left in the pipe can still be read.
    Exited,
    Ended,
}

impl<S: ByteStream + Send + 'static> ChildStream<S> {
    pub(super) fn new(stream: S, runtime: impl Runtime) -> Self {
        let discard = move |stream| drop(task::spawn(&runtime, discard(stream)));
        let discard: Box<dyn FnOnce(Self) + Send> = Box::new(discard);
        let output = Output::Open(None);
        Self(Arc::new(Mutex::new(Shared { stream, output, discard: Some(discard) })))
    }
}

async fn discard<S: ByteStream>(mut stream: ChildStream<S>) {
    let mut chunk = [0; DISCARDED_CHUNK];
    // Closing a pipe does not block.
    let _ = poll_fn(|cx| stream.poll_close(cx)).await;
    while poll_fn(|cx| stream.poll_read(cx, &mut chunk)).await.is_ok_and(|length| length > 0) {}
}

impl<S> ChildStream<S> {
    pub(super) fn control(&self) -> StreamControl<S> {
        StreamControl(Arc::downgrade(&self.0))
    }

    fn lock(&self) -> MutexGuard<'_, Shared<S>> {
        lock(&self.0)
    }
}

// A panic elsewhere leaves no inconsistent state.
fn lock<S>(shared: &Mutex<Shared<S>>) -> MutexGuard<'_, Shared<S>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S> Drop for ChildStream<S> {
    fn drop(&mut self) {
        let mut shared = self.lock();
        let discard = shared.discard.take().filter(|_| matches!(shared.output, Output::Open(_)));
        drop(shared);
        if let Some(discard) = discard {
            discard(Self(Arc::clone(&self.0)));
        }
    }
}

impl<S> fmt::Debug for ChildStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildStream").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for StreamControl<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamControl")
    }
}

impl<S> Clone for StreamControl<S> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}

impl<S: ByteStream> StreamControl<S> {
    /// Closes the child's input. Nothing can be written afterwards.
    pub(super) fn close_input(&self) {
        if let Some(shared) = self.0.upgrade() {
            // Closing a pipe does not block.
            let _ = lock(&shared).stream.poll_close(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Returns whether the child's output is still being read.
    pub(super) fn is_open(&self) -> bool {
        self.0.upgrade().is_some_and(|shared| matches!(lock(&shared).output, Output::Open(_)))
    }

    /// Ends the output once the pipe has been drained.
    pub(super) fn end_output(&self) {
        let Some(shared) = self.0.upgrade() else { return };
        let mut shared = lock(&shared);
        if let Output::Open(waker) = &mut shared.output {
            let waker = waker.take();
            shared.output = Output::Exited;
            drop(shared);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<S: ByteStream> ByteStream for ChildStream<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let shared = &mut *self.lock();
        match (shared.stream.poll_read(cx, buffer), &mut shared.output) {
            (Poll::Pending, Output::Open(waker)) => {
                if !waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
                    *waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            (Poll::Pending, _) => Poll::Ready(Ok(0)),
            (Poll::Ready(Ok(0)), output) if !buffer.is_empty() => {
                *output = Output::Ended;
                Poll::Ready(Ok(0))
            }
            (read, _) => read,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.lock().stream.poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lock().stream.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lock().stream.poll_close(cx)
    }
}
