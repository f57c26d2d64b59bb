use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::runtime::Sleep;
use crate::Runtime;

/// Bytes that a client must read within the stall timeout, unless less is pending. With the default
/// of 30 s that is 546 bytes a second. Otherwise a byte now and then would keep a connection open.
pub(super) const PROGRESS_BYTES: usize = 16 * 1024;

/// The longest lingering close: more than a round trip, and short enough not to accumulate.
const LINGER_TIME: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 8 * 1024 * 1024;

/// Fails writes to a client that reads too little for too long.
#[derive(Debug)]
pub(super) struct StallGuard<R> {
    runtime: R,
    stall_timeout: Duration,
    /// Runs while the client has not yet read the pending data, or enough of it.
    stall_timer: Option<StallTimer>,
}

/// The period in which a client must read [`PROGRESS_BYTES`], or all pending data.
#[derive(Debug)]
struct StallTimer {
    until: Sleep,
    /// Bytes read.
    taken: usize,
}

impl<R: Runtime> StallGuard<R> {
    /// Creates a guard whose client must read all pending data, or 16 KiB of it, within
    /// `stall_timeout`.
    pub(super) const fn new(runtime: R, stall_timeout: Duration) -> Self {
        Self { runtime, stall_timeout, stall_timer: None }
    }

    /// Checks the outcome of a write: [`io::ErrorKind::TimedOut`] if the client has read too little
    /// for too long.
    pub(super) fn check(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let Self { runtime, stall_timeout, stall_timer } = self;
        match written {
            Poll::Ready(Ok(count)) => {
                if let Some(running) = stall_timer {
                    running.taken += count;
                    if running.taken >= PROGRESS_BYTES {
                        *stall_timer = None;
                    }
                }
                written
            }
            Poll::Ready(Err(_)) => written,
            Poll::Pending => {
                let running = stall_timer.get_or_insert_with(|| StallTimer {
                    until: Sleep::after(*stall_timeout, runtime),
                    taken: 0,
                });
                ready!(running.until.poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    /// Records that all data is written.
    pub(super) fn reset(&mut self) {
        self.stall_timer = None;
    }

    /// Starts a lingering close of a connection that has received `bytes` unread bytes.
    pub(super) fn linger(&self, bytes: usize) -> LingeringClose {
        LingeringClose { until: Sleep::after(LINGER_TIME, &self.runtime), bytes }
    }
}

/// Reads the data that a client still sends after everything is sent to it.
///
/// Closing a socket with unread data makes the system reset the connection, which also discards a
/// response that the client has not read yet because it is still sending. So the data is read for a
/// while.
#[derive(Debug)]
pub(super) struct LingeringClose {
    until: Sleep,
    bytes: usize,
}

impl LingeringClose {
    /// Reads with `read` until the end of input or the time limit.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(&mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<()> {
        let mut space = [0; 8192];
        while self.bytes < LINGER_BYTES {
            match read(cx, &mut space) {
                Poll::Ready(Ok(count)) if count > 0 => self.bytes += count,
                Poll::Ready(_) => break,
                // A client that is still sending has data in flight.
                Poll::Pending if self.bytes == 0 => break,
                Poll::Pending => return self.until.poll(cx),
            }
        }
        Poll::Ready(())
    }
}
