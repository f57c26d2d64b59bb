use std::task::{Context, Poll};

use mcp_sansio::Instant;

/// A monotonic clock and one alarm on it.
pub trait Timer {
    /// The time it is.
    fn now(&self) -> Instant;

    /// Waits until [`now`](Self::now) has reached `deadline`.
    ///
    /// Each call replaces the deadline of the one before. Deadlines move all the time, mostly away:
    /// an implementation that re-arms its alarm only for an earlier deadline, and otherwise when it
    /// has gone off too soon, costs nothing per message. Waking the task too early is harmless.
    fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()>;
}

impl<T: Timer + ?Sized> Timer for &mut T {
    fn now(&self) -> Instant {
        (**self).now()
    }

    fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        (**self).poll_until(cx, deadline)
    }
}
