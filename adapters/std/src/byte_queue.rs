use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A bounded buffer of bytes between a thread that may block and a task that must not, either way.
#[derive(Debug, Default)]
pub(crate) struct ByteQueue {
    state: Mutex<State>,
    /// Tells the thread that the task has been here.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    /// How many of the bytes are taken already.
    start: usize,
    /// The thread has taken bytes and is not back for more.
    busy: bool,
    /// The task adds no more.
    closed: bool,
    /// The task has gone.
    abandoned: bool,
    /// How the thread has ended. An error is handed out once to each kind of question.
    ended: Option<Result<(), SharedError>>,
    waker: Option<Waker>,
}

/// An error that can be told more than once.
#[derive(Clone, Debug)]
struct SharedError {
    kind: io::ErrorKind,
    text: String,
}

/// Ends a queue for a thread that panics in foreign code, so that the task does not wait for it.
#[derive(Debug)]
pub(crate) struct EndOnPanic<'c>(pub(crate) &'c ByteQueue);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(Err(io::Error::other("the reader or the writer panicked")));
        }
    }
}

/// The most that waits. 64 KiB, as in a pipe.
const CAPACITY: usize = 64 * 1024;

impl ByteQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock, so nothing is half done after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state from the thread's side and wakes the task.
    fn tell<T>(&self, mut state: MutexGuard<'_, State>, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        result
    }

    // ------------------------------------------------------------------ from the thread

    /// Adds `bytes`, as soon as there is nothing else. `false` when nobody wants them any more.
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

    /// Exchanges `buffer`, which is empty, for what there is, as soon as there is something.
    /// `false` when nothing more will come.
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

    /// The thread has ended, or is about to.
    pub(crate) fn end(&self, outcome: io::Result<()>) {
        let outcome =
            outcome.map_err(|error| SharedError { kind: error.kind(), text: error.to_string() });
        self.tell(self.lock(), |state| {
            state.busy = false;
            state.ended.get_or_insert(outcome);
        });
    }

    // ------------------------------------------------------------------ from the task

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

    /// Adds the start of `bytes`, as far as there is room.
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

    /// Ready when the thread is done with all there was.
    pub(crate) fn poll_taken(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        match &state.ended {
            Some(ended) => Poll::Ready(ended.clone().map_err(io::Error::from)),
            None if state.is_empty() && !state.busy => Poll::Ready(Ok(())),
            None => state.wait(cx),
        }
    }

    /// Nothing more will be added.
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

    /// The task has gone: the thread may end as soon as it can.
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

    /// Has the task woken at the next change.
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
