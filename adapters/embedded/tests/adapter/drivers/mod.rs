//! Both drivers on scripted streams and a manual clock.

mod closing;
#[path = "../../../../async/tests/adapter/driver/echo.rs"]
mod echo;
mod peers;
mod scripted;
mod transfer;

use std::cell::{Ref, RefCell, RefMut};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};

use embedded_io::ErrorKind;
use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio_embedded::{Clock, DriveError, Driver, NextPoll, PolledDriver, StreamSettings};
use mcp_sansio_handlers::endpoint::Endpoint;

use echo::Echo;
use scripted::{ManualClock, Scripted};

type Outcome = Result<(), DriveError<ErrorKind, ErrorKind>>;

/// An endpoint that the test can inspect while it is driven.
#[derive(Debug, Default)]
struct SharedEndpoint<E>(Rc<RefCell<E>>);

impl<E> Clone for SharedEndpoint<E> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<E: Endpoint> Endpoint for SharedEndpoint<E> {
    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, now: Instant) {
        self.0.borrow_mut().handle_frame(frame, now);
    }

    fn handle_eof(&mut self, now: Instant) {
        self.0.borrow_mut().handle_eof(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.0.borrow_mut().handle_timeout(now);
    }

    fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.0.borrow_mut().poll_handlers(cx, now);
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        self.0.borrow_mut().transmit(write);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.borrow().poll_timeout()
    }

    fn is_congested(&self) -> bool {
        self.0.borrow().is_congested()
    }

    fn is_drained(&self) -> bool {
        self.0.borrow().is_drained()
    }

    fn is_closed(&self) -> bool {
        self.0.borrow().is_closed()
    }
}

/// One of the two drivers.
enum Either {
    Executor(Pin<Box<dyn Future<Output = Outcome>>>),
    Loop(Box<PolledDriver<'static, SharedEndpoint<Echo>, Scripted, Scripted>>),
}

/// A driver with the endpoint, the stream and the clock that a test inspects.
struct DriverTest {
    driver: Either,
    /// How long the bare loop may sleep before its next poll.
    next: Option<NextPoll>,
    endpoint: SharedEndpoint<Echo>,
    stream: Scripted,
    clock: ManualClock,
    wakes: Arc<WakeCounter>,
}

/// Counts how often the task was woken.
#[derive(Debug, Default)]
pub(crate) struct WakeCounter(pub(crate) AtomicUsize);

impl WakeCounter {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The maximum length of a line, and the size of the output buffer.
const LINE: usize = 64;
const OUTPUT: usize = 16;

/// Runs a test with both drivers. `script` creates the stream and `test` makes the assertions.
fn both(endpoint: impl Fn() -> Echo, script: impl Fn() -> Scripted, test: impl Fn(DriverTest)) {
    with_settings(StreamSettings::DEVICE, endpoint, script, test);
}

fn with_settings(
    settings: StreamSettings,
    endpoint: impl Fn() -> Echo,
    script: impl Fn() -> Scripted,
    test: impl Fn(DriverTest),
) {
    for polled in [false, true] {
        let (stream, clock) = (script(), ManualClock::default());
        let endpoint = SharedEndpoint(Rc::new(RefCell::new(endpoint())));
        let (reader, writer, line) = (stream.clone(), stream.clone(), vec![0; LINE].leak());
        let driver = if polled {
            let driver = PolledDriver::new(endpoint.clone(), reader, writer, line);
            Either::Loop(Box::new(driver.settings(settings.clone())))
        } else {
            let output = vec![0; OUTPUT].leak();
            let clock = clock.clone();
            let driver = Driver::new(endpoint.clone(), reader, writer, clock, line, output);
            Either::Executor(Box::pin(driver.settings(settings.clone()).run()))
        };
        test(DriverTest { driver, next: None, endpoint, stream, clock, wakes: Arc::default() });
    }
}

impl DriverTest {
    fn is_loop(&self) -> bool {
        matches!(self.driver, Either::Loop(_))
    }

    /// Polls once, or, for the loop, as often as it asks to be polled again immediately.
    fn poll(&mut self) -> Poll<Outcome> {
        match &mut self.driver {
            Either::Executor(future) => {
                let waker = Arc::clone(&self.wakes).into();
                future.as_mut().poll(&mut Context::from_waker(&waker))
            }
            Either::Loop(driver) => {
                for _ in 0..100 {
                    let next = match driver.poll(self.clock.now()) {
                        Ok(next) => next,
                        Err(error) => return Poll::Ready(Err(error)),
                    };
                    self.next = Some(next);
                    match next {
                        NextPoll::Now => {}
                        NextPoll::Wait(_) => return Poll::Pending,
                        NextPoll::Closed => return Poll::Ready(Ok(())),
                    }
                }
                panic!("the loop never sleeps");
            }
        }
    }

    /// Polls at most `times` times until the connection has ended.
    fn run(&mut self, times: usize) -> Outcome {
        for _ in 0..times {
            if let Poll::Ready(outcome) = self.poll() {
                return outcome;
            }
        }
        panic!("the connection has not ended after {times} polls");
    }

    fn echo(&self) -> Ref<'_, Echo> {
        self.endpoint.0.borrow()
    }

    fn echo_mut(&self) -> RefMut<'_, Echo> {
        self.endpoint.0.borrow_mut()
    }
}
