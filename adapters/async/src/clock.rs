#![allow(clippy::disallowed_methods, reason = "an adapter is where the time comes from")]

//! The clock of this process.

use std::sync::OnceLock;
use std::time::{Duration, Instant as StdInstant, SystemTime, UNIX_EPOCH};

use mcp_sansio::Instant;

/// The time of day, in seconds since 1970: what servers take that judge tokens or seal
/// states.
#[must_use]
pub fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The current time. The origin of the clock is its first use in this process.
#[must_use]
pub fn now() -> Instant {
    from_std(StdInstant::now())
}

/// A moment of the standard library's clock on the clock of [`now`]; the origin if it is before that.
#[must_use]
pub fn from_std(moment: StdInstant) -> Instant {
    // The first one, not the time it is: a runtime's clock may stand still, before that.
    let origin = *ORIGIN.get_or_init(|| moment);
    Instant::ZERO + moment.saturating_duration_since(origin)
}

/// `instant` on the standard library's clock; what that cannot represent is thirty years away.
#[must_use]
pub fn to_std(instant: Instant) -> StdInstant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);
    let since = instant.saturating_since(Instant::ZERO).min(FAR);
    let origin = *ORIGIN.get_or_init(StdInstant::now);
    origin.checked_add(since).unwrap_or(origin)
}

static ORIGIN: OnceLock<StdInstant> = OnceLock::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_starts_at_its_first_use() {
        let (moment, time) = (StdInstant::now(), Duration::from_secs(5));
        let start = from_std(moment);
        assert_eq!(from_std(moment + time), start + time);
    }

    #[test]
    fn moments_and_instants_are_the_same_clock() {
        for millis in [0, 1, 86_400_000] {
            let instant = Instant::from_millis(millis);
            assert_eq!(from_std(to_std(instant)), instant);
        }
        assert!(to_std(Instant::from_nanos(u64::MAX)) > to_std(Instant::from_millis(1)));
    }
}
