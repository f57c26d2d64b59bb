//! The timer, on a paused clock.

use std::future::poll_fn;
use std::time::Duration;

use mcp_sansio_async::Timer as _;
use mcp_sansio_tokio::runtime::TokioTimer;

/// Returns the milliseconds until a deadline of `millis` from now passes, after polling once for each
/// deadline in `before`.
async fn wait(before: &[u64], millis: u64) -> u64 {
    let mut timer = TokioTimer::new();
    let start = timer.now();
    let at = |millis| start + Duration::from_millis(millis);
    let mut before = before.iter();
    poll_fn(|cx| {
        for &millis in before.by_ref() {
            assert!(timer.poll_until(cx, at(millis)).is_pending());
        }
        timer.poll_until(cx, at(millis))
    })
    .await;
    u64::try_from(timer.now().saturating_since(start).as_millis()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_last_deadline_counts_wherever_it_moved() {
    for before in [&[][..], &[50], &[500], &[50, 500, 70]] {
        let waited = wait(before, 100).await;
        assert!((100..=102).contains(&waited), "{waited} ms after {before:?}");
    }
}
