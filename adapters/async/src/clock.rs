#![allow(clippy::disallowed_methods, reason = "an adapter provides the time")]

//! The clock of the process.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::time::{Duration, Instant as StdInstant, SystemTime, UNIX_EPOCH};

use mcp_sansio::Instant;

/// Returns the time of day in seconds since 1970: the default of [`Server::unix_time`].
///
/// [`Server::unix_time`]: mcp_sansio_handlers::Server::unix_time
#[must_use]
pub fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the current time. The origin of the clock is its first use in this process.
#[must_use]
pub fn now() -> Instant {
    from_std(StdInstant::now())
}

/// Converts a moment of the standard library's clock to the clock of [`now`]. Moments before the
/// origin become the origin.
#[must_use]
pub fn from_std(moment: StdInstant) -> Instant {
    // Use the given moment, not the current time: a runtime's clock may be paused before that.
    let origin = *ORIGIN.get_or_init(|| moment);
    Instant::ZERO + moment.saturating_duration_since(origin)
}

/// Converts `instant` to the standard library's clock; values that it cannot represent become
/// thirty years after the origin.
#[must_use]
pub fn to_std(instant: Instant) -> StdInstant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);
    let since = instant.saturating_since(Instant::ZERO).min(FAR);
    let origin = *ORIGIN.get_or_init(StdInstant::now);
    origin.checked_add(since).unwrap_or(origin)
}

static ORIGIN: OnceLock<StdInstant> = OnceLock::new();

// ------------------------------------------------------------------ entropy

/// Returns an unpredictable number to key the hash tables of a connection.
///
/// It comes from the operating system, by way of the standard library's hash map keys. Do not use
/// it for secrets that leave the process.
#[must_use]
pub fn seed() -> u64 {
    RandomState::new().hash_one(())
}

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
