//! A scripted stream, a manual clock and a counting waker.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};

use mcp_sansio::Instant;
use mcp_sansio_async::{ByteStream, Timer};

/// The result of one stream operation.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Pending,
    Error(io::ErrorKind),
    /// Reads only.
    Bytes(Vec<u8>),
    /// Reads only.
    End,
    /// Writes only: accepts this many bytes.
    Take(usize),
}

#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Once empty, reads are pending.
    pub(crate) reads: VecDeque<Step>,
    /// Once empty, writes accept everything.
    pub(crate) writes: VecDeque<Step>,
    /// Once empty, closing succeeds.
    pub(crate) closes: VecDeque<Step>,
    /// One letter per completed operation: `r`ead, `w`rite, `f`lush, `c`lose. Pending operations
    /// are not recorded.
    pub(crate) trace: String,
    pub(crate) written: Vec<u8>,
    /// Whether the last read was pending or reached the end of input, and whether the last write
    /// was pending.
    pub(crate) waits: (bool, bool),
}

/// A handle shared with the test, which may extend the script at any time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scripted(pub(crate) Rc<RefCell<Script>>);

impl Scripted {
    pub(crate) fn read(self, bytes: &str) -> Self {
        self.step(Step::Bytes(bytes.into()))
    }

    pub(crate) fn step(self, step: Step) -> Self {
        self.0.borrow_mut().reads.push_back(step);
        self
    }

    pub(crate) fn writes(self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.0.borrow_mut().writes.extend(steps);
        self
    }

    pub(crate) fn written(&self) -> String {
        String::from_utf8(self.0.borrow().written.clone()).unwrap()
    }

    pub(crate) fn trace(&self) -> String {
        self.0.borrow().trace.clone()
    }
}

impl ByteStream for Scripted {
    fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        assert!(!buffer.is_empty());
        let script = &mut *self.0.borrow_mut();
        script.waits.0 = matches!(script.reads.front(), None | Some(Step::Pending | Step::End));
        match script.reads.pop_front() {
            None | Some(Step::Pending) => Poll::Pending,
            Some(Step::Bytes(bytes)) => {
                let length = bytes.len().min(buffer.len());
                buffer[..length].copy_from_slice(&bytes[..length]);
                if length < bytes.len() {
                    script.reads.push_front(Step::Bytes(bytes[length..].to_vec()));
                }
                script.trace.push('r');
                Poll::Ready(Ok(length))
            }
            Some(Step::End) => Poll::Ready(Ok(0)),
            Some(Step::Error(kind)) => Poll::Ready(Err(kind.into())),
            Some(Step::Take(_)) => unreachable!("a write step in the script of reads"),
        }
    }

    fn poll_write(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        assert!(!bytes.is_empty());
        let script = &mut *self.0.borrow_mut();
        script.waits.1 = matches!(script.writes.front(), Some(Step::Pending));
        let length = match script.writes.pop_front() {
            None => bytes.len(),
            Some(Step::Take(length)) => length.min(bytes.len()),
            Some(Step::Pending) => return Poll::Pending,
            Some(Step::Error(kind)) => return Poll::Ready(Err(kind.into())),
            Some(step) => unreachable!("{step:?} is not a write step"),
        };
        script.written.extend_from_slice(&bytes[..length]);
        script.trace.push('w');
        Poll::Ready(Ok(length))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().trace.push('f');
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let script = &mut *self.0.borrow_mut();
        match script.closes.pop_front() {
            None => {
                script.trace.push('c');
                Poll::Ready(Ok(()))
            }
            Some(Step::Pending) => {
                script.closes.push_front(Step::Pending);
                Poll::Pending
            }
            Some(Step::Error(kind)) => Poll::Ready(Err(kind.into())),
            Some(step) => unreachable!("{step:?} is not a close step"),
        }
    }
}

/// A clock set by the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct ManualClock {
    millis: Rc<Cell<u64>>,
    /// The deadline passed to the last `poll_until`.
    pub(crate) awaited: Rc<Cell<Option<Instant>>>,
}

impl ManualClock {
    pub(crate) fn set(&self, millis: u64) {
        self.millis.set(millis);
    }
}

impl Timer for ManualClock {
    fn now(&self) -> Instant {
        Instant::from_millis(self.millis.get())
    }

    fn poll_until(&mut self, _: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        self.awaited.set(Some(deadline));
        if deadline <= self.now() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Counts how often the task was woken.
#[derive(Debug, Default)]
pub(crate) struct WakeCounter(AtomicUsize);

impl WakeCounter {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
