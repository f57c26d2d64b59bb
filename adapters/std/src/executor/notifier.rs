use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Wake;

#[cfg(not(unix))]
use std::thread::{self, Thread};

/// The future is being polled, or is about to be.
const RUNNING: u8 = 0;
/// The future must be polled again.
const WOKEN: u8 = 1;
/// The thread sleeps, or is about to.
const PARKED: u8 = 2;

/// State shared by the wakers of one `block_on`. Only a wake-up of a sleeping thread costs a system
/// call.
#[derive(Debug)]
pub(crate) struct Notifier {
    state: AtomicU8,
    /// A byte in the pipe ends `poll(2)`. The pipe holds at most one byte per wake-up since the
    /// last check, so that writing does not block.
    #[cfg(unix)]
    pipe: (io::PipeReader, io::PipeWriter),
    #[cfg(not(unix))]
    thread: Thread,
}

impl Notifier {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            state: AtomicU8::new(RUNNING),
            #[cfg(unix)]
            pipe: io::pipe()?,
            #[cfg(not(unix))]
            thread: thread::current(),
        })
    }

    /// Clears earlier wake-ups: a later one requests another poll.
    pub(super) fn reset(&self) {
        self.state.swap(RUNNING, Ordering::AcqRel);
    }

    /// Returns whether the thread may sleep, because it was not woken since [`reset`](Self::reset).
    pub(super) fn park(&self) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.state.compare_exchange(RUNNING, PARKED, success, failure).is_ok()
    }

    /// Marks the thread as awake. A wake-up in the meantime is kept.
    pub(super) fn unpark(&self) {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        // A failure means that it is WOKEN already.
        let _ = self.state.compare_exchange(PARKED, RUNNING, success, failure);
    }

    /// Returns the descriptor that becomes readable on a wake-up.
    #[cfg(unix)]
    pub(super) const fn descriptor(&self) -> &io::PipeReader {
        &self.pipe.0
    }

    /// Drains the pipe after [`descriptor`](Self::descriptor) has become readable.
    #[cfg(unix)]
    pub(super) fn drain(&self) {
        // An error recurs at the next wait.
        let _ = io::Read::read(&mut &self.pipe.0, &mut [0; 64]);
    }
}

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::AcqRel) != PARKED {
            return;
        }
        #[cfg(unix)]
        // The read end is in the same structure, so it is open.
        let _ = io::Write::write(&mut &self.pipe.1, &[1]);
        #[cfg(not(unix))]
        self.thread.unpark();
    }
}
