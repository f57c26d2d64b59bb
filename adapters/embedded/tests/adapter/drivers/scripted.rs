//! Scripted halves of a stream and a manual clock.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use embedded_io_async::{ErrorKind, ErrorType, Read, ReadReady, Write};
use mcp_sansio::Instant;
use mcp_sansio_embedded::Clock;

/// The result of one operation on a half.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Reads: the next read finds no data. Writes: nothing is accepted until the test adds another
    /// step.
    Pending,
    Error(ErrorKind),
    /// Reads only.
    Bytes(Vec<u8>),
    /// Reads only.
    End,
    /// Writes only: accepts this many bytes. An error behind it is that of the flush, if all was
    /// accepted.
    Take(usize),
}

#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Once empty, no data is available.
    reads: VecDeque<Step>,
    /// Once empty, writes accept everything.
    writes: VecDeque<Step>,
    /// One letter per completed operation: `r`ead, `w`rite, `f`lush. Pending operations are not
    /// recorded.
    trace: String,
    written: Vec<u8>,
}

/// A handle shared with the test, which may extend the script at any time. It serves as both
/// halves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scripted(Rc<RefCell<Script>>);

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

    fn take_read(&self, buffer: &mut [u8]) -> Poll<Result<usize, ErrorKind>> {
        let script = &mut *self.0.borrow_mut();
        Poll::Ready(match script.reads.pop_front() {
            None | Some(Step::Pending) => return Poll::Pending,
            Some(Step::Bytes(bytes)) => {
                let length = bytes.len().min(buffer.len());
                buffer[..length].copy_from_slice(&bytes[..length]);
                if length < bytes.len() {
                    script.reads.push_front(Step::Bytes(bytes[length..].to_vec()));
                }
                script.trace.push('r');
                Ok(length)
            }
            Some(Step::End) => Ok(0),
            Some(Step::Error(kind)) => Err(kind),
            Some(Step::Take(_)) => unreachable!("a write step in the script of reads"),
        })
    }

    fn take_write(&self, bytes: &[u8]) -> Poll<Result<usize, ErrorKind>> {
        assert!(!bytes.is_empty());
        let script = &mut *self.0.borrow_mut();
        if let Some(Step::Pending) = script.writes.front() {
            if script.writes.len() == 1 {
                return Poll::Pending;
            }
            script.writes.pop_front();
        }
        let length = match script.writes.pop_front() {
            None => bytes.len(),
            Some(Step::Take(length)) => length.min(bytes.len()),
            Some(Step::Error(kind)) => return Poll::Ready(Err(kind)),
            Some(step) => unreachable!("{step:?} is not a write step"),
        };
        script.written.extend_from_slice(&bytes[..length]);
        script.trace.push('w');
        Poll::Ready(Ok(length))
    }

    fn take_flush(&self) -> Result<(), ErrorKind> {
        let script = &mut *self.0.borrow_mut();
        if let Some(Step::Error(kind)) = script.writes.front() {
            let kind = *kind;
            script.writes.pop_front();
            return Err(kind);
        }
        script.trace.push('f');
        Ok(())
    }
}

impl ErrorType for Scripted {
    type Error = ErrorKind;
}

impl Read for Scripted {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ErrorKind> {
        poll_fn(|_| self.take_read(buffer)).await
    }
}

impl Write for Scripted {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        poll_fn(|_| self.take_write(bytes)).await
    }

    async fn flush(&mut self) -> Result<(), ErrorKind> {
        self.take_flush()
    }
}

impl ReadReady for Scripted {
    fn read_ready(&mut self) -> Result<bool, ErrorKind> {
        let reads = &mut self.0.borrow_mut().reads;
        if let Some(Step::Pending) = reads.front() {
            reads.pop_front();
            return Ok(false);
        }
        Ok(!reads.is_empty())
    }
}

impl embedded_io::Read for Scripted {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ErrorKind> {
        match self.take_read(buffer) {
            Poll::Ready(read) => read,
            Poll::Pending => panic!("the read would block"),
        }
    }
}

impl embedded_io::Write for Scripted {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        match self.take_write(bytes) {
            Poll::Ready(written) => written,
            Poll::Pending => panic!("the write would block forever"),
        }
    }

    fn flush(&mut self) -> Result<(), ErrorKind> {
        self.take_flush()
    }
}

/// A clock set by the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct ManualClock(Rc<Cell<u64>>);

impl ManualClock {
    pub(crate) fn set(&self, millis: u64) {
        self.0.set(millis);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        Instant::from_millis(self.0.get())
    }

    async fn wait_until(&self, deadline: Instant) {
        poll_fn(|_| if deadline <= self.now() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}
