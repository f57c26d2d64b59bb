use mcp_sansio::Instant;
use mcp_sansio_async::clock;
use tokio::time;

/// The time it is on the clock of every [`TokioTimer`](crate::TokioTimer): what to construct a
/// machine with. Follows tokio's paused clock in tests.
///
/// The origin is the first use in this process.
#[must_use]
pub fn now() -> Instant {
    from_std(time::Instant::now())
}

/// `moment` on our clock; the origin if it is before that.
pub(crate) fn from_std(moment: time::Instant) -> Instant {
    clock::from_std(moment.into_std())
}

/// `instant` on tokio's clock; what it cannot represent is thirty years away.
pub(crate) fn to_std(instant: Instant) -> time::Instant {
    time::Instant::from_std(clock::to_std(instant))
}
