use std::time::Duration;

/// Waits on the runtime that the connection uses.
pub(crate) async fn sleep(time: Duration) {
    #[cfg(feature = "tokio")]
    if !cfg!(feature = "smol") || tokio::runtime::Handle::try_current().is_ok() {
        return tokio::time::sleep(time).await;
    }
    #[cfg(feature = "smol")]
    async_io::Timer::after(time).await;
}
