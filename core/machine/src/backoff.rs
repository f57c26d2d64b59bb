use core::time::Duration;

/// The delays after which a client tries to reopen a lost stream or connection: growing intervals,
/// with a limit on the number of attempts.
///
/// The interval doubles from `initial` up to `ceiling`. Half of each delay is fixed and half is
/// random, so that the clients of a restarted server do not all reconnect at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Backoff {
    /// The first interval. 1 s: the usual delay of browsers for an event stream, and short enough
    /// that a user may not notice.
    pub initial: Duration,
    /// The longest interval. 30 s: a restarted server is found within half a minute.
    pub ceiling: Duration,
    /// Consecutive attempts before the client gives up; zero disables reconnecting. 8: about two
    /// minutes with the other defaults.
    pub attempts_max: u32,
}

impl Backoff {
    /// The defaults.
    pub const DEFAULT: Self =
        Self { initial: Duration::from_secs(1), ceiling: Duration::from_secs(30), attempts_max: 8 };
}

impl Default for Backoff {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A series of attempts to reach a server again, and the delay before each.
///
/// The same seed gives the same delays.
///
/// ```
/// use core::time::Duration;
/// use mcp_sansio::{Attempts, Backoff};
///
/// let mut attempts = Attempts::new(Backoff::DEFAULT, 42);
/// let first = attempts.next_delay(None).expect("the first attempt");
/// assert!(first >= Duration::from_millis(500) && first <= Duration::from_secs(1));
/// ```
#[derive(Clone, Debug)]
pub struct Attempts {
    backoff: Backoff,
    /// The number of attempts since the last success.
    made: u32,
    random: SplitMix64,
}

impl Attempts {
    /// Starts a series. The seed must be random, so that clients differ.
    #[must_use]
    pub const fn new(backoff: Backoff, seed: u64) -> Self {
        Self { backoff, made: 0, random: SplitMix64(seed) }
    }

    /// Returns the delay before the next attempt, or `None` if no attempts are left. The delay is
    /// at least `retry`, which the server asked for.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-008]: the random part is
    // added to `retry`, because a server sends the same value to all clients.
    pub fn next_delay(&mut self, retry: Option<Duration>) -> Option<Duration> {
        if self.made >= self.backoff.attempts_max {
            return None;
        }
        // More doublings than the type has bits have no further effect.
        let factor = 1_u32.checked_shl(self.made).unwrap_or(u32::MAX);
        self.made += 1;
        let interval = self.backoff.initial.saturating_mul(factor).min(self.backoff.ceiling);
        let half = interval / 2;
        let least = half.max(retry.unwrap_or_default());
        Some(least.saturating_add(self.random.up_to(half)))
    }

    /// Returns the number of attempts since the last success.
    #[must_use]
    pub const fn made(&self) -> u32 {
        self.made
    }

    /// Leaves one attempt at least, without making it earlier: for what succeeded, but not for long.
    pub(crate) const fn keep_one(&mut self) {
        let last = self.backoff.attempts_max.saturating_sub(1);
        if self.made > last {
            self.made = last;
        }
    }

    /// Starts over after a success.
    pub const fn reset(&mut self) {
        self.made = 0;
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and good enough for jitter.
#[derive(Clone, Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random duration from zero to `greatest`, or to 584 years if that is less.
    fn up_to(&mut self, greatest: Duration) -> Duration {
        let nanoseconds = u64::try_from(greatest.as_nanos()).unwrap_or(u64::MAX);
        let drawn = (u128::from(self.next()) * (u128::from(nanoseconds) + 1)) >> 64;
        Duration::from_nanos(u64::try_from(drawn).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const BACKOFF: Backoff = Backoff {
        initial: Duration::from_millis(100),
        ceiling: Duration::from_millis(1000),
        attempts_max: 6,
    };

    fn delays(seed: u64, retry: Option<Duration>) -> Vec<Duration> {
        let mut attempts = Attempts::new(BACKOFF, seed);
        core::iter::from_fn(|| attempts.next_delay(retry)).collect()
    }

    #[test]
    fn the_generator_matches_its_reference() {
        let mut random = SplitMix64(1_234_567);
        let drawn = [random.next(), random.next(), random.next()];
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(drawn, published);
    }

    #[test]
    fn intervals_double_up_to_the_ceiling_and_delays_are_drawn_from_their_upper_half() {
        for seed in 0..200 {
            let delays = delays(seed, None);
            assert_eq!(delays.len(), 6);
            for (delay, interval) in delays.into_iter().zip([100, 200, 400, 800, 1000, 1000]) {
                let interval = Duration::from_millis(interval);
                assert!(delay >= interval / 2 && delay <= interval, "{delay:?} of {interval:?}");
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_delays_and_another_one_others() {
        assert_eq!(delays(7, None), delays(7, None));
        assert_ne!(delays(7, None), delays(8, None));
    }

    #[test]
    fn delays_respect_the_servers_retry() {
        // Rule: [SSE-008].
        for retry in [0, 60, 700, 5000, u64::MAX].map(Duration::from_millis) {
            for delay in delays(3, Some(retry)) {
                assert!(delay >= retry, "{delay:?} of {retry:?}");
            }
        }
        assert_ne!(delays(3, Some(Duration::MAX / 2)), delays(4, Some(Duration::MAX / 2)));
        assert_eq!(delays(3, Some(Duration::MAX)), [Duration::MAX; 6]);
    }

    #[test]
    fn attempts_run_out_and_a_success_renews_them() {
        let mut attempts = Attempts::new(BACKOFF, 0);
        while attempts.next_delay(None).is_some() {}
        assert_eq!(attempts.next_delay(Some(Duration::ZERO)), None);
        attempts.reset();
        assert!(attempts.next_delay(None).is_some_and(|delay| delay <= BACKOFF.initial));
        let never = Backoff { attempts_max: 0, ..BACKOFF };
        assert_eq!(Attempts::new(never, 0).next_delay(None), None);
    }

    #[test]
    fn extremes_saturate() {
        let backoff =
            Backoff { initial: Duration::MAX, ceiling: Duration::MAX, attempts_max: u32::MAX };
        let mut attempts = Attempts::new(backoff, 1);
        attempts.made = u32::MAX - 1;
        assert!(attempts.next_delay(None).is_some_and(|delay| delay >= Duration::MAX / 2));
        assert_eq!(attempts.next_delay(None), None);
        let zero = Backoff { initial: Duration::ZERO, ..BACKOFF };
        assert_eq!(Attempts::new(zero, 1).next_delay(None), Some(Duration::ZERO));
    }
}
