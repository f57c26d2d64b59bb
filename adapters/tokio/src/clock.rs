use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use mcp_sansio::Instant;
use tokio::time;

/// The time it is on the clock of every [`TokioTimer`](crate::TokioTimer): what to construct a
/// machine with. Follows tokio's paused clock in tests.
///
/// The origin is the first use in this process.
#[must_use]
pub fn now() -> Instant {
    from_moment(time::Instant::now())
}

/// The time of day, in seconds since 1970: what servers take that judge tokens or seal
/// states.
#[allow(clippy::disallowed_methods, reason = "an adapter is where the time comes from")]
#[must_use]
pub fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// `moment` on our clock; the origin if it is before that.
pub(crate) fn from_moment(moment: time::Instant) -> Instant {
    Instant::ZERO + moment.into_std().saturating_duration_since(origin())
}

/// `instant` on tokio's clock; what it cannot represent is thirty years away.
pub(crate) fn to_moment(instant: Instant) -> time::Instant {
    const FAR: std::time::Duration = std::time::Duration::from_secs(30 * 365 * 86_400);
    let since = instant.saturating_since(Instant::ZERO).min(FAR);
    let moment = origin().checked_add(since).unwrap_or_else(origin);
    time::Instant::from_std(moment)
}

#[allow(clippy::disallowed_methods, reason = "an adapter is where the time comes from")]
fn origin() -> std::time::Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    *ORIGIN.get_or_init(std::time::Instant::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_instants_are_the_same_clock() {
        for millis in [0, 1, 86_400_000] {
            let instant = Instant::from_millis(millis);
            assert_eq!(from_moment(to_moment(instant)), instant);
        }
        assert!(to_moment(Instant::from_nanos(u64::MAX)) > to_moment(Instant::from_millis(1)));
    }
}
