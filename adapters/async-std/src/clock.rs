use std::sync::OnceLock;
use std::time::{self, Duration, SystemTime, UNIX_EPOCH};

use mcp_sansio::Instant;

/// The time it is on the clock of every [`AsyncTimer`](crate::AsyncTimer): what to construct a
/// machine with.
///
/// The origin is the first use in this process.
#[allow(clippy::disallowed_methods, reason = "an adapter is where the time comes from")]
#[must_use]
pub fn now() -> Instant {
    let origin = origin();
    Instant::ZERO + time::Instant::now().saturating_duration_since(origin)
}

/// The time of day, in seconds since 1970: what servers take that judge tokens or seal
/// states.
#[allow(clippy::disallowed_methods, reason = "an adapter is where the time comes from")]
#[must_use]
pub fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// `instant` on the system's clock; what it cannot represent is thirty years away.
pub(crate) fn to_moment(instant: Instant) -> time::Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);
    let since = instant.saturating_since(Instant::ZERO).min(FAR);
    origin().checked_add(since).unwrap_or_else(origin)
}

#[allow(clippy::disallowed_methods, reason = "an adapter is where the time comes from")]
fn origin() -> time::Instant {
    static ORIGIN: OnceLock<time::Instant> = OnceLock::new();
    *ORIGIN.get_or_init(time::Instant::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_instants_are_the_same_clock() {
        for millis in [0, 1, 86_400_000] {
            let since = to_moment(Instant::from_millis(millis)).duration_since(origin());
            assert_eq!(since, Duration::from_millis(millis));
        }
        assert!(to_moment(Instant::from_nanos(u64::MAX)) > to_moment(Instant::from_millis(1)));
    }
}
