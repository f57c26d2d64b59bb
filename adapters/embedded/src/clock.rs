use mcp_sansio::Instant;

/// A monotonic clock with a timer.
#[allow(async_fn_in_trait, reason = "a device's executor does not require futures to be `Send`")]
pub trait Clock {
    /// Returns the current time.
    fn now(&self) -> Instant;

    /// Waits until [`now`](Self::now) has reached `deadline`; returns at once if it already has.
    /// Returning slightly early is harmless. The future is dropped when another deadline replaces
    /// it.
    async fn wait_until(&self, deadline: Instant);
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Instant {
        (**self).now()
    }

    async fn wait_until(&self, deadline: Instant) {
        (**self).wait_until(deadline).await;
    }
}
