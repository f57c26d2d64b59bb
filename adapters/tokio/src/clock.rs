use mcp_sansio::Instant;
use mcp_sansio_async::clock;
use tokio::time;

/// Returns the current time on the clock of every [`TokioTimer`](crate::runtime::TokioTimer), to construct a
/// machine with. Follows tokio's paused clock in tests.
///
/// The origin is the first use in this process.
#[must_use]
pub fn now() -> Instant {
    from_std(time::Instant::now())
}

/// Converts `moment` to the clock of [`now`]; moments before the origin become the origin.
pub(crate) fn from_std(moment: time::Instant) -> Instant {
    clock::from_std(moment.into_std())
}

/// Converts `instant` to tokio's clock; values that it cannot represent become thirty years after
/// the origin.
pub(crate) fn to_std(instant: Instant) -> time::Instant {
    time::Instant::from_std(clock::to_std(instant))
}
