use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use mcp_sansio::Instant;

use super::http2::ConnectionAction;
use super::{ResponseNotRead, SendBody};
use crate::Runtime;

/// Tracks the deadline for the next request head of a connection. It runs while the server waits
/// for the client.
#[derive(Debug)]
pub(super) struct HeadTimer<R> {
    runtime: R,
    state: Mutex<HeadState>,
    /// Time limit for a head.
    head_timeout: Duration,
}

#[derive(Clone, Copy, Debug)]
enum HeadState {
    /// The server waits for a head, until the deadline.
    AwaitingHead(Instant),
    /// The client has yet to read the response.
    Flushing,
    /// A request is in progress.
    Responding,
}

impl<R: Runtime> HeadTimer<R> {
    /// Creates a timer whose first head is due at `deadline`, and each later one within
    /// `head_timeout`.
    pub(super) const fn new(deadline: Instant, head_timeout: Duration, runtime: R) -> Self {
        Self { runtime, state: Mutex::new(HeadState::AwaitingHead(deadline)), head_timeout }
    }

    /// Disables the deadline until the response is complete: a head has arrived.
    pub(super) fn head_received(head_timer: &Arc<Self>) -> ResponseGuard<R> {
        head_timer.set(HeadState::Responding);
        ResponseGuard(Arc::clone(head_timer))
    }

    /// Disables the deadline permanently.
    pub(super) fn disable(&self) {
        self.set(HeadState::Responding);
    }

    /// Returns the action that is due.
    pub(super) fn check(&self) -> ConnectionAction {
        let deadline = self.deadline();
        if deadline <= self.runtime.now() {
            ConnectionAction::Close
        } else {
            ConnectionAction::WaitUntil(deadline)
        }
    }

    /// Returns the next time at which the timer needs a check.
    fn deadline(&self) -> Instant {
        match self.state() {
            HeadState::AwaitingHead(deadline) => deadline,
            // The deadline has not started yet.
            HeadState::Flushing | HeadState::Responding => self.runtime.now() + self.head_timeout,
        }
    }

    /// Starts the deadline if the client has taken the whole response.
    fn flushed(&self) {
        if matches!(self.state(), HeadState::Flushing) {
            self.set(HeadState::AwaitingHead(self.runtime.now() + self.head_timeout));
        }
    }

    fn state(&self) -> HeadState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: HeadState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// Marks a request as in progress until it is dropped.
#[derive(Debug)]
pub(super) struct ResponseGuard<R: Runtime>(Arc<HeadTimer<R>>);

impl<R: Runtime> Drop for ResponseGuard<R> {
    fn drop(&mut self) {
        self.0.set(HeadState::Flushing);
    }
}

/// A response body that holds its guard until it is completely handed to the connection.
#[derive(Debug)]
pub(super) struct GuardedBody<R: Runtime> {
    pub(super) body: SendBody,
    pub(super) _guard: Option<ResponseGuard<R>>,
}

impl<R: Runtime> Body for GuardedBody<R> {
    type Data = <SendBody as Body>::Data;
    type Error = ResponseNotRead;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, ResponseNotRead>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket that reports flushes to the head timer.
#[derive(Debug)]
pub(super) struct TimedSocket<S, R> {
    pub(super) socket: S,
    pub(super) head_timer: Arc<HeadTimer<R>>,
}

impl<S: Read + Unpin, R> Read for TimedSocket<S, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, space)
    }
}

impl<S: Write + Unpin, R: Runtime> Write for TimedSocket<S, R> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    // hyper flushes whenever it has written everything, even if that was nothing.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        if flushed.is_ready() {
            self.head_timer.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // No more heads are awaited, and the socket limits the time of its shutdown.
        self.head_timer.disable();
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::ManualClock;

    const HEAD_TIME: Duration = Duration::from_secs(30);

    #[test]
    fn a_head_is_late_counted_from_the_end_of_the_last_response() {
        let clock = ManualClock::default();
        let first = clock.now() + Duration::from_secs(7);
        let head_timer = Arc::new(HeadTimer::new(first, HEAD_TIME, clock.clone()));
        assert_eq!(head_timer.deadline(), first);
        let guard = HeadTimer::head_received(&head_timer);
        clock.advance(Duration::from_secs(3600));
        // A handler may take any time for a response, parts of which may be flushed before,
        head_timer.flushed();
        assert_eq!(head_timer.deadline(), clock.now() + HEAD_TIME);
        clock.advance(Duration::from_secs(3600));
        drop(guard);
        // and so may its client.
        clock.advance(Duration::from_secs(3600));
        assert_eq!(head_timer.deadline(), clock.now() + HEAD_TIME);
        head_timer.flushed();
        let taken = clock.now();
        clock.advance(Duration::from_secs(1));
        head_timer.flushed();
        clock.advance(Duration::from_secs(3600));
        assert_eq!(head_timer.deadline(), taken + HEAD_TIME);
    }

    #[test]
    fn a_closing_connection_has_no_head_deadline() {
        let clock = ManualClock::default();
        let head_timer = HeadTimer::new(clock.now(), HEAD_TIME, clock.clone());
        head_timer.disable();
        head_timer.flushed();
        clock.advance(Duration::from_secs(3600));
        assert_eq!(head_timer.deadline(), clock.now() + HEAD_TIME);
    }
}
