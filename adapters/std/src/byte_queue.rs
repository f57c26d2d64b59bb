use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A bounded byte buffer between a thread that may block and a task that must not, for either
/// direction.
#[derive(Debug, Default)]
pub(crate) struct ByteQueue {
    state: Mutex<State>,
    /// Notifies the thread of changes by the task.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    /// The number of bytes already taken.
    start: usize,
    /// Whether the thread is processing bytes that it has taken.
    busy: bool,
    /// Whether the task has closed its end.
    closed: bool,
    /// Whether the task has dropped the stream.
    abandoned: bool,
    /// The result of the thread. An error is reported once per kind of operation.
    ended: Option<Result<(), SharedError>>,
    waker: Option<Waker>,
}

/// An error that can be reported more than once.
#[derive(Clone, Debug)]
struct SharedError {
    kind: io::ErrorKind,
    text: String,
}

/// Ends a queue if the thread panics in foreign code, so that the task does not wait for it.
#[derive(Debug)]
pub(crate) struct EndOnPanic<'c>(pub(crate) &'c ByteQueue);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(Err(io::Error::other("the reader or the writer panicked")));
        }
    }
}

/// The maximum of queued bytes. 64 KiB, as in a pipe.
const CAPACITY: usize = 64 * 1024;

impl ByteQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock, so a panic leaves no inconsistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state from the thread and wakes the task.
    fn tell<T>(&self, mut state: MutexGuard<'_, State>, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        result
    }

    // ------------------------------------------------------------------ called by the thread

    /// Adds `bytes` once the queue is empty. Returns `false` if the task has dropped the stream.
    pub(crate) fn push(&self, bytes: &[u8]) -> bool {
        let wait = |state: &mut State| !state.is_empty() && !state.abandoned;
        let state = self.changed.wait_while(self.lock(), wait);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if state.abandoned {
            return false;
        }
        self.tell(state, |state| {
            state.compact();
            state.bytes.extend_from_slice(bytes);
        });
        true
    }

    /// Waits for bytes and exchanges them for `buffer`, which is empty. Returns `false` when no
    /// more will follow.
    pub(crate) fn take(&self, buffer: &mut Vec<u8>) -> bool {
        let mut state = self.lock();
        if state.busy {
            self.tell(state, |state| state.busy = false);
            state = self.lock();
        }
        let wait = |state: &mut State| state.is_empty() && !state.closed && !state.abandoned;
        let state = self.changed.wait_while(state, wait);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if state.abandoned || state.is_empty() {
            return false;
        }
        self.tell(state, |state| {
            state.compact();
            std::mem::swap(&mut state.bytes, buffer);
            state.busy = true;
        });
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Records the result of the thread, which is about to end.
    pub(crate) fn end(&self, outcome: io::Result<()>) {
        let outcome =
            outcome.map_err(|error| SharedError { kind: error.kind(), text: error.to_string() });
        self.tell(self.lock(), |state| {
            state.busy = false;
            state.ended.get_or_insert(outcome);
        });
    }

    // ------------------------------------------------------------------ called by the task

    /// Takes the first bytes into `buffer`. Zero at the end.
    pub(crate) fn poll_take(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        if state.is_empty() {
            return match &state.ended {
                Some(ended) => Poll::Ready(ended.clone().map(|()| 0).map_err(io::Error::from)),
                None => state.wait(cx),
            };
        }
        let waiting = &state.bytes[state.start..];
        let length = waiting.len().min(buffer.len());
        buffer[..length].copy_from_slice(&waiting[..length]);
        state.start += length;
        if state.is_empty() {
            self.changed.notify_one();
        }
        Poll::Ready(Ok(length))
    }

    /// Adds a prefix of `bytes`, as far as it fits.
    pub(crate) fn poll_push(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        if let Some(Err(broken)) = &state.ended {
            return Poll::Ready(Err(broken.clone().into()));
        }
        if state.closed || state.ended.is_some() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = CAPACITY.saturating_sub(state.bytes.len());
        if room == 0 {
            return state.wait(cx);
        }
        let length = bytes.len().min(room);
        state.bytes.extend_from_slice(&bytes[..length]);
        self.changed.notify_one();
        Poll::Ready(Ok(length))
    }

    /// Ready once the thread has processed all bytes.
    pub(crate) fn poll_taken(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        match &state.ended {
            Some(ended) => Poll::Ready(ended.clone().map_err(io::Error::from)),
            None if state.is_empty() && !state.busy => Poll::Ready(Ok(())),
            None => state.wait(cx),
        }
    }

    /// Closes the queue for additions.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Ready when the thread has ended.
    pub(crate) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        match &state.ended {
            Some(ended) => Poll::Ready(ended.clone().map_err(io::Error::from)),
            None => state.wait(cx),
        }
    }

    /// Abandons the queue: the thread may end as soon as it can.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        let waker = state.waker.take();
        drop(state);
        drop(waker);
        self.changed.notify_one();
    }
}

impl State {
    const fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// Registers the task to be woken at the next change.
    fn wait<T>(&mut self, cx: &Context<'_>) -> Poll<T> {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn compact(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
    }
}

impl From<SharedError> for io::Error {
    fn from(broken: SharedError) -> Self {
        Self::new(broken.kind, broken.text)
    }
}
