use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::{fmt, io, mem};

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
    Open {
        /// The task that waits for output, if it has since the last [`StreamControl::is_drained`].
        waker: Option<Waker>,
        /// Whether a task waited at that call, and nothing was read since.
        is_quiet: bool,
    },
    /// Nothing is waited for. What can be read at once is still read.
    Ended,
}

impl<S: ByteStream + Send + 'static> ChildStream<S> {
    pub(super) fn new(stream: S, runtime: impl Runtime) -> Self {
        let discard = move |stream| drop(task::spawn(&runtime, discard(stream)));
        let discard: Box<dyn FnOnce(Self) + Send> = Box::new(discard);
        let output = Output::Open { waker: None, is_quiet: false };
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
        let discard =
            shared.discard.take().filter(|_| matches!(shared.output, Output::Open { .. }));
        drop(shared);
        if let Some(discard) = discard {
            discard(Self(Arc::clone(&self.0)));
        }
    }
}

mcp_sansio::partial_debug! { impl<S> Debug for ChildStream<S> { .. } }

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
        self.0.upgrade().is_some_and(|shared| matches!(lock(&shared).output, Output::Open { .. }))
    }

    /// Returns whether the output has been quiet since the last call: a task waited for it at both
    /// calls, and read nothing in between. True if it has ended.
    ///
    /// A single read that is not ready is no sign: on Windows every read begins on another thread,
    /// and tokio interrupts a task that does much.
    pub(super) fn is_drained(&self) -> bool {
        let Some(shared) = self.0.upgrade() else { return true };
        let mut shared = lock(&shared);
        let Output::Open { waker, is_quiet } = &mut shared.output else { return true };
        let waiting = waker.take();
        let was_quiet = mem::replace(is_quiet, waiting.is_some());
        let is_drained = was_quiet && waiting.is_some();
        drop(shared);
        // The task reads again, unless it is busy.
        waiting.into_iter().for_each(Waker::wake);
        is_drained
    }

    /// Ends the output: a read that is not ready is its end.
    pub(super) fn end_output(&self) {
        let Some(shared) = self.0.upgrade() else { return };
        let output = mem::replace(&mut lock(&shared).output, Output::Ended);
        if let Output::Open { waker: Some(waker), .. } = output {
            waker.wake();
        }
    }
}

impl<S: ByteStream> ByteStream for ChildStream<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let shared = &mut *self.lock();
        match (shared.stream.poll_read(cx, buffer), &mut shared.output) {
            (Poll::Pending, Output::Open { waker, .. }) => {
                if !waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
                    *waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            (Poll::Pending, Output::Ended) => Poll::Ready(Ok(0)),
            (Poll::Ready(Ok(0)), output) if !buffer.is_empty() => {
                *output = Output::Ended;
                Poll::Ready(Ok(0))
            }
            (read, output) => {
                if let Output::Open { waker, is_quiet } = output {
                    (*waker, *is_quiet) = (None, false);
                }
                read
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::ManualClock;

    /// Output that is not ready when a read begins, as pipes of Windows are, and then no end.
    struct Slow {
        left: u8,
        has_begun: bool,
    }

    impl ByteStream for Slow {
        fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
            let is_ready = mem::replace(&mut self.has_begun, true) && self.left > 0;
            if !is_ready {
                return Poll::Pending;
            }
            *self = Self { left: self.left - 1, has_begun: false };
            buffer[0] = b'x';
            Poll::Ready(Ok(1))
        }

        fn poll_write(&mut self, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            unreachable!("nothing is written")
        }

        fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            unreachable!("nothing is written")
        }

        fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Reads until nothing is ready, and returns the number of reads and whether the output ended.
    fn read<S: ByteStream>(stream: &mut ChildStream<S>) -> (usize, bool) {
        let cx = &mut Context::from_waker(Waker::noop());
        let mut count = 0;
        loop {
            match stream.poll_read(cx, &mut [0]) {
                Poll::Ready(Ok(1)) => count += 1,
                Poll::Ready(_) => return (count, true),
                Poll::Pending => return (count, false),
            }
        }
    }

    #[test]
    fn output_is_drained_when_a_read_has_waited_and_not_when_one_has_only_begun() {
        let slow = Slow { left: 2, has_begun: false };
        let mut stream = mem::ManuallyDrop::new(ChildStream::new(slow, ManualClock::default()));
        let control = stream.control();
        // A task that is busy and does not read is waited for.
        for _ in 0..3 {
            assert!(!control.is_drained());
        }
        assert_eq!(read(&mut stream), (0, false));
        assert!(!control.is_drained());
        // It has read something since.
        assert_eq!(read(&mut stream), (1, false));
        assert!(!control.is_drained());
        // The wait before the last output does not count when the task has been busy.
        assert!(!control.is_drained());
        assert_eq!(read(&mut stream), (1, false));
        assert!(!control.is_drained());
        assert_eq!(read(&mut stream), (0, false));
        assert!(control.is_drained());
        control.end_output();
        assert_eq!(read(&mut stream), (0, true));
    }
}
