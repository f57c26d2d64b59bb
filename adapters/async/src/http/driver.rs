use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcp_sansio::http::client::Transmit;
use mcp_sansio_handlers::HttpEndpoint;

use crate::{Timer, panic_guard};

use super::exchanger::Exchanger;
use super::exchanges::Exchanges;

/// How many pieces of responses are taken in one poll before other tasks get their turn. 256: with
/// pieces as large as networks have them, about a millisecond's work.
const STEPS_PER_POLL_MAX: usize = 256;

/// Drives the client's side of one connection over HTTP until it is over: a future to spawn, to
/// await, or to poll beside others.
///
/// * Exchanges run side by side, as many as the endpoint begins; one that is slow holds up no
///   other, and one that says much lets the others have their turn after each piece.
/// * What the endpoint wants sent after a piece is begun before the next piece is taken.
/// * A poll does a bounded amount of work, then lets other tasks have their turn.
/// * A host's function that panics costs its request and no more: see [`panic_guard`].
/// * It ends when the endpoint [`is_drained`](HttpEndpoint::is_drained), which has bounds of its
///   own on how long the server may take to hear of the end. Exchanges that are still under way
///   are broken off.
///
/// To drop it is to drop the connection: exchanges are broken off, and the server is not told.
pub struct HttpDriver<E, X: Exchanger, T> {
    endpoint: E,
    exchanger: X,
    timer: T,
    exchanges: Exchanges<X::Exchange>,
}

// Nothing in here is pinned: the future is a machine with its parts as plain fields.
impl<E, X: Exchanger, T> Unpin for HttpDriver<E, X, T> {}

impl<E: HttpEndpoint, X: Exchanger, T: Timer> HttpDriver<E, X, T> {
    /// A driver of `endpoint`.
    #[must_use]
    pub fn new(mut endpoint: E, exchanger: X, timer: T) -> Self {
        endpoint.catch_panics(panic_guard());
        Self { endpoint, exchanger, timer, exchanges: Exchanges::new() }
    }

    /// What is driven.
    #[must_use]
    pub const fn endpoint(&self) -> &E {
        &self.endpoint
    }

    /// What is driven, for commands. Poll the driver afterwards: it does not wake by itself.
    #[must_use]
    pub const fn endpoint_mut(&mut self) -> &mut E {
        &mut self.endpoint
    }

    /// What performs the exchanges.
    #[must_use]
    pub const fn exchanger(&self) -> &X {
        &self.exchanger
    }

    /// Begins and breaks off what the endpoint wants begun and broken off.
    fn transmit(&mut self) {
        while let Some(transmit) = self.endpoint.poll_transmit() {
            match transmit {
                Transmit::Send(request) => {
                    let exchange = self.exchanger.send(&request);
                    self.exchanges.begin(request.exchange, exchange);
                }
                Transmit::Abort(exchange) => self.exchanges.abort(exchange),
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
