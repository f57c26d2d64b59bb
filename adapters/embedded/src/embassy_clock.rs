use embassy_time::{Duration, Timer};
use mcp_sansio::Instant;

use crate::Clock;

/// The clock of Embassy, whose origin is its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbassyClock;

impl Clock for EmbassyClock {
    fn now(&self) -> Instant {
        // Whole microseconds: 64 bits of nanoseconds are enough for 584 years.
        Instant::from_nanos(embassy_time::Instant::now().as_micros().saturating_mul(1000))
    }

    async fn wait_until(&self, deadline: Instant) {
        // Rounded up to the next microsecond and tick, so that the deadline has passed when the timer
        // fires: some drivers count 32,768 ticks a second.
        let micros = deadline.as_nanos().div_ceil(1000);
        let at = match embassy_time::Instant::try_from_micros(micros) {
            Some(at) if at.as_micros() < micros => at + Duration::from_ticks(1),
            Some(at) => at,
            // A deadline that exceeds the range of the driver's ticks is never reached.
            None => embassy_time::Instant::MAX,
        };
        Timer::at(at).await;
    }
}

#[cfg(test)]
mod tests {
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Waker};

    // Provides the critical section for the timers.
    use critical_section as _;
    use embassy_time::MockDriver;

    use super::*;

    #[test]
    fn a_deadline_has_come_when_the_wait_for_it_ends() {
        let driver = MockDriver::get();
        driver.reset();
        let (clock, mut cx) = (EmbassyClock, Context::from_waker(Waker::noop()));
        assert_eq!(clock.now(), Instant::ZERO);
        let deadline = Instant::from_nanos(1_999_001);
        let mut wait = pin!(clock.wait_until(deadline));
        assert!(wait.as_mut().poll(&mut cx).is_pending());
        driver.advance(Duration::from_micros(1999));
        assert!(clock.now() < deadline);
        assert!(wait.as_mut().poll(&mut cx).is_pending());
        driver.advance(Duration::from_micros(1));
        assert!(clock.now() >= deadline);
        assert!(wait.as_mut().poll(&mut cx).is_ready());
        assert!(pin!(clock.wait_until(Instant::from_nanos(u64::MAX))).poll(&mut cx).is_pending());
    }
}
