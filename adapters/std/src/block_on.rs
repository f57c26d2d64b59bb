use std::future::{Future, poll_fn};
use std::time::Duration;

use mcp_sansio_async::Timer as _;

use crate::Clock;

/// Runs `future` to completion on this thread, which also waits for the streams and timers that it
/// uses. The future need not be `Send`; its wakers work from any thread.
///
/// The future must not block the thread for long, since everything else in it waits meanwhile. A
/// nested `block_on` is allowed, but blocks the outer one.
pub fn block_on<F: Future>(future: F) -> F::Output {
    async_io::block_on(future)
}

/// Waits without blocking the thread: for the delays of [`Servers`](crate::Servers).
pub async fn sleep(time: Duration) {
    let mut clock = Clock::new();
    let deadline = clock.now() + time;
    poll_fn(|cx| clock.poll_until(cx, deadline)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::now;

    #[test]
    fn a_sleep_ends_after_its_time() {
        let start = now();
        block_on(sleep(Duration::from_millis(5)));
        assert!(now() >= start + Duration::from_millis(5));
    }

    #[test]
    fn one_block_on_may_be_inside_of_another() {
        assert_eq!(block_on(async { block_on(async { 7 }) }), 7);
    }
}
