//! The driver on a scripted stream and a manual clock.

mod closing;
mod echo;
mod peers;
mod scripted;
mod transfer;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_sansio_async::{DriveError, Driver, StreamSettings};
use mcp_sansio_handlers::endpoint::Endpoint;

use echo::Echo;
use scripted::{ManualClock, Scripted, WakeCounter};

/// A driver with the stream, the clock and the wake counter that a test inspects.
struct DriverTest<E> {
    driver: Driver<E, Scripted, ManualClock>,
    stream: Scripted,
    clock: ManualClock,
    wakes: Arc<WakeCounter>,
}

impl<E: Endpoint> DriverTest<E> {
    fn with(endpoint: E, stream: Scripted, settings: StreamSettings) -> Self {
        let clock = ManualClock::default();
        let driver = Driver::with_settings(endpoint, stream.clone(), clock.clone(), settings);
        Self { driver, stream, clock, wakes: Arc::default() }
    }

    fn new(endpoint: E, stream: Scripted) -> Self {
        Self::with(endpoint, stream, StreamSettings::default())
    }

    fn poll(&mut self) -> Poll<Result<(), DriveError>> {
        let waker = Arc::clone(&self.wakes).into();
        Pin::new(&mut self.driver).poll(&mut Context::from_waker(&waker))
    }

    /// Polls at most `times` times until the connection has ended.
    fn run(&mut self, times: usize) -> Result<(), DriveError> {
        for _ in 0..times {
            if let Poll::Ready(outcome) = self.poll() {
                return outcome;
            }
        }
        panic!("the connection has not ended after {times} polls");
    }
}

impl DriverTest<Echo> {
    fn seen(&self) -> Vec<&str> {
        self.driver.endpoint().seen.iter().map(String::as_str).collect()
    }
}
