use alloc::sync::Arc;
use core::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio_sync::Mutex;

/// A clock that moves only when a [`Pair`](crate::Pair) moves it. Clones show the same time.
///
/// Pass a clone to functions of your application that need the time, for example the `unix_time` of
/// `Server::protect`, and create the pair with [`Pair::with_clock`](crate::Pair::with_clock).
///
/// ```
/// use mcp_sansio_test::VirtualClock;
///
/// let clock = VirtualClock::default();
/// let unix_time = { let clock = clock.clone(); move || 1_800_000_000 + clock.elapsed().as_secs() };
/// assert_eq!(unix_time(), 1_800_000_000);
/// ```
#[derive(Clone, Default)]
pub struct VirtualClock(Arc<Mutex<Instant>>);

impl VirtualClock {
    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.0.lock(|now| *now)
    }

    /// Returns the time since the creation of the clock.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.now().saturating_since(Instant::ZERO)
    }

    /// Moves the clock to a later time.
    pub(crate) fn advance_to(&self, time: Instant) {
        self.0.lock(|now| *now = time.max(*now));
    }
}

impl core::fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("VirtualClock").field(&self.elapsed()).finish()
    }
}
