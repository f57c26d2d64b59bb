use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_sansio::Instant;
use mcp_sansio_async::{Alarm, AlarmTimer, clock};
use tokio::time::{self, Sleep, sleep_until};

/// Returns the current time on the clock of every [`TokioTimer`], to construct a
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

/// The clock [`now`] with one alarm of the current tokio runtime, whose time must be
/// enabled.
pub type TokioTimer = AlarmTimer<TokioAlarm>;

/// An alarm of the current tokio runtime.
#[derive(Debug)]
pub struct TokioAlarm(Pin<Box<Sleep>>);

impl Alarm for TokioAlarm {
    fn now() -> Instant {
        now()
    }

    fn new(at: Instant) -> Self {
        Self(Box::pin(sleep_until(to_std(at))))
    }

    fn reset(&mut self, at: Instant) {
        self.0.as_mut().reset(to_std(at));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }

    fn may_be_due(&self) -> bool {
        self.0.is_elapsed()
    }
}
