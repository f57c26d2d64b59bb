use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::sleep::Sleep;
use crate::Runtime;

/// A client takes this much in the time that it may stall, or all there is for it. With the default
/// of 30 s these are 546 bytes a second. Otherwise a byte now and then would hold a connection.
pub(super) const PROGRESS_BYTES: usize = 16 * 1024;

/// The longest lingering close: more than a round trip, and nothing that adds up.
const LINGER_TIME: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 8 * 1024 * 1024;

/// Fails writes to a client that takes too little for too long.
#[derive(Debug)]
pub struct StallGuard<R> {
    runtime: R,
    stall_timeout: Duration,
    /// Runs while the client has yet to take what is there for it, or enough of it.
    stall_timer: Option<StallTimer>,
}

/// The time in which a client has to take [`PROGRESS_BYTES`], or all there is for it.
#[derive(Debug)]
struct StallTimer {
    until: Sleep,
    /// Bytes taken.
    taken: usize,
}

impl<R: Runtime> StallGuard<R> {
    /// One whose client has to take all that there is for it within `stall_timeout`, or 16 KiB of it.
    pub const fn new(runtime: R, stall_timeout: Duration) -> Self {
        Self { runtime, stall_timeout, stall_timer: None }
    }

    /// Checks the outcome of a write: [`io::ErrorKind::TimedOut`] if the client has taken too little
    /// for too long.
    pub fn check(
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

    /// Takes note that all there was is written.
    pub fn reset(&mut self) {
        self.stall_timer = None;
    }

    /// Begins the end of the connection, where so many bytes have come that nobody took.
    pub fn linger(&self, bytes: usize) -> LingeringClose {
        LingeringClose { until: Sleep::after(LINGER_TIME, &self.runtime), bytes }
    }
}

/// Reads what a client still sends once everything is sent to it.
///
/// To close a socket with bytes that nobody has read makes the system reset the connection, and
/// with it goes a response that the client has not read yet, because it is still sending. So what
/// it sends is read for a while.
#[derive(Debug)]
pub struct LingeringClose {
    until: Sleep,
    bytes: usize,
}

impl LingeringClose {
    /// Reads by `read` up to the end, or to the end of the time for it.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(&mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<()> {
        let mut space = [0; 8192];
        while self.bytes < LINGER_BYTES {
            match read(cx, &mut space) {
                Poll::Ready(Ok(count)) if count > 0 => self.bytes += count,
                Poll::Ready(_) => break,
                // A client that is sending has something on the way.
                Poll::Pending if self.bytes == 0 => break,
                Poll::Pending => return self.until.poll(cx),
            }
        }
        Poll::Ready(())
    }
}
