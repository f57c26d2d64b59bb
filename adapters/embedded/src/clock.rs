use mcp_sansio::Instant;

/// A monotonic clock that can be waited for.
#[allow(async_fn_in_trait, reason = "a device's executor asks no future to be `Send`")]
pub trait Clock {
    /// The time it is.
    fn now(&self) -> Instant;

    /// Waits until [`now`](Self::now) has reached `deadline`; at once if it has already. To come
    /// back a little early is harmless. The future is dropped where another deadline takes its
    /// place.
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
