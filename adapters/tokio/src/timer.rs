use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio_async::Timer;
use tokio::time::{self, Sleep};

/// The clock and one alarm of the tokio runtime that it is used in.
///
/// The origin is the moment of [`new`](Self::new). Follows tokio's paused clock in tests.
pub struct TokioTimer {
    origin: time::Instant,
    /// The alarm and when it goes off, never later than the deadline that is waited for.
    armed: Option<(Pin<Box<Sleep>>, Instant)>,
}

impl TokioTimer {
    /// A clock that starts at [`Instant::ZERO`].
    #[must_use]
    pub fn new() -> Self {
        Self { origin: time::Instant::now(), armed: None }
    }

    /// The moment in tokio's terms; one that tokio cannot represent is thirty years away.
    fn moment(&self, instant: Instant) -> time::Instant {
        const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);
        let since = instant.saturating_since(Instant::ZERO);
        self.origin.checked_add(since.min(FAR)).unwrap_or(self.origin)
    }
}

impl Default for TokioTimer {
    fn default() -> Self {
        Self::new()
    }
}

impl Timer for TokioTimer {
    fn now(&self) -> Instant {
        Instant::ZERO + time::Instant::now().saturating_duration_since(self.origin)
    }

    fn poll_until(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let moment = self.moment(deadline);
        match &mut self.armed {
            // An alarm that goes off too soon is moved then: cheaper than with every message.
            Some((_, alarm)) if *alarm <= deadline => {}
            Some((sleep, alarm)) => {
                sleep.as_mut().reset(moment);
                *alarm = deadline;
            }
            None => self.armed = Some((Box::pin(time::sleep_until(moment)), deadline)),
        }
        while let Some((sleep, alarm)) = &mut self.armed {
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if *alarm >= deadline {
                break;
            }
            sleep.as_mut().reset(moment);
            *alarm = deadline;
        }
        Poll::Ready(())
    }
}

impl fmt::Debug for TokioTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let armed = self.armed.as_ref().map(|(_, alarm)| alarm);
        f.debug_struct("TokioTimer").field("armed", &armed).finish_non_exhaustive()
    }
}
