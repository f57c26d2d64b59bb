use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_sansio::http::ClientTransmit;
use mcp_sansio_handlers::endpoint::HttpEndpoint;

use crate::{Timer, panic_guard};

use super::exchange::Exchanger;
use super::exchanges::Exchanges;

/// Body chunks processed per poll before yielding to other tasks. 256: with typical chunk sizes
/// about one millisecond of work.
const STEPS_PER_POLL_MAX: usize = 256;

/// Drives the client side of one connection over HTTP until it is over: a future to spawn, to
/// await, or to poll alongside others.
///
/// * Exchanges run concurrently, as many as the endpoint begins. A slow one delays no other, and a
///   busy one yields to the others after each chunk.
/// * Requests that the endpoint sends in reaction to a chunk are begun before the next chunk is
///   processed.
/// * A poll does a bounded amount of work, then yields to other tasks.
/// * A panicking function of the host only fails its request: see [`panic_guard`].
/// * It ends when the endpoint [`is_drained`](HttpEndpoint::is_drained), which bounds how long the
///   server may take to receive the close. Exchanges still running are aborted.
///
/// Dropping it drops the connection: exchanges are aborted, and the server is not notified.
pub struct HttpDriver<E, X: Exchanger, T> {
    endpoint: E,
    exchanger: X,
    timer: T,
    exchanges: Exchanges<X::Exchange>,
}

// No field is pinned: the future is a state machine with plain fields.
impl<E, X: Exchanger, T> Unpin for HttpDriver<E, X, T> {}

impl<E: HttpEndpoint, X: Exchanger, T: Timer> HttpDriver<E, X, T> {
    /// Creates a driver of `endpoint`.
    #[must_use]
    pub fn new(mut endpoint: E, exchanger: X, timer: T) -> Self {
        endpoint.catch_panics(panic_guard());
        Self { endpoint, exchanger, timer, exchanges: Exchanges::new() }
    }

    /// Returns the endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &E {
        &self.endpoint
    }

    /// Returns the endpoint, for commands. Poll the driver afterwards: a command does not wake it.
    #[must_use]
    pub const fn endpoint_mut(&mut self) -> &mut E {
        &mut self.endpoint
    }

    /// Returns the exchanger.
    #[must_use]
    pub const fn exchanger(&self) -> &X {
        &self.exchanger
    }

    /// Begins and aborts exchanges as the endpoint requests.
    fn transmit(&mut self) {
        while let Some(transmit) = self.endpoint.poll_transmit() {
            match transmit {
                ClientTransmit::Send(request) => {
                    let exchange = self.exchanger.send(&request);
                    self.exchanges.begin(request.exchange, exchange);
                }
                ClientTransmit::Abort(exchange) => self.exchanges.abort(exchange),
            }
        }
    }
}

impl<E: HttpEndpoint, X: Exchanger, T: Timer> Future for HttpDriver<E, X, T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = &mut *self;
        driver.exchanges.register(cx.waker());
        for _ in 0..STEPS_PER_POLL_MAX {
            let now = driver.timer.now();
            if driver.endpoint.poll_timeout().is_some_and(|deadline| deadline <= now) {
                driver.endpoint.handle_timeout(now);
            }
            driver.endpoint.poll_handlers(cx, now);
            driver.transmit();
            if driver.endpoint.is_drained() {
                driver.exchanges.abort_all();
                return Poll::Ready(());
            }
            if driver.exchanges.step(&mut driver.endpoint, now) {
                continue;
            }
            let due = match driver.endpoint.poll_timeout() {
                Some(deadline) => driver.timer.poll_until(cx, deadline),
                None => Poll::Pending,
            };
            if due.is_pending() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<E: fmt::Debug, X: Exchanger, T> fmt::Debug for HttpDriver<E, X, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpDriver")
            .field("endpoint", &self.endpoint)
            .field("exchanges", &self.exchanges)
            .finish_non_exhaustive()
    }
}
