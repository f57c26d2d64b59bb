use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};

use mcp_sansio::Instant;
use mcp_sansio::http::{
    ClientTransmit, ExchangeFailure, ExchangeId, IncomingResponse, OutgoingRequest,
};
use mcp_sansio_handlers::endpoint::HttpEndpoint;

use crate::{Timer, panic_guard};

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

mcp_sansio::partial_debug! {
    impl<E: fmt::Debug, X: Exchanger, T> Debug for HttpDriver<E, X, T> { endpoint, exchanges, .. }
}

// ------------------------------------------------------------------ exchange

/// Performs HTTP exchanges. A runtime implements it with an HTTP library.
pub trait Exchanger {
    /// A running exchange.
    type Exchange: Exchange;

    /// Begins an exchange: sends the request unchanged, with `Host` and `Content-Length` added. It
    /// follows no redirects, stores no cookies, and retries nothing that may have reached the
    /// server.
    ///
    /// Exchanges do not wait for one another, and each has a timeout for establishing its
    /// connection. The endpoint limits the time for the response.
    fn send(&mut self, request: &OutgoingRequest) -> Self::Exchange;
}

/// One HTTP request and its response. Dropping it aborts the exchange at once.
///
/// As usual, a method that returns [`Poll::Pending`] has registered the task to be woken when it
/// should be polled again. Do not poll after the end or a failure.
pub trait Exchange {
    /// Waits for the head of the response, whatever its status.
    ///
    /// # Errors
    ///
    /// The response head will not arrive.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<IncomingResponse<'_>, ExchangeFailure>>;

    /// Waits for the next chunk of the body, of any size up to a limit of the exchange; `None` at
    /// the end. Only polled after the head has arrived.
    ///
    /// # Errors
    ///
    /// The rest of the body will not arrive.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<&[u8]>, ExchangeFailure>>;
}

// ------------------------------------------------------------------ exchanges

/// The running exchanges, indexed by the slot of their id.
pub(super) struct Exchanges<X> {
    slots: Vec<Slot<X>>,
    ready: Arc<ReadyQueue>,
    /// Slots whose bodies are currently not read.
    held: Vec<usize>,
}

struct Slot<X> {
    exchange: Option<ActiveExchange<X>>,
    signal: Arc<ExchangeSignal>,
    /// Wakes through `signal`.
    waker: Waker,
}

struct ActiveExchange<X> {
    id: ExchangeId,
    exchange: X,
    has_head: bool,
}

impl<X: Exchange> Exchanges<X> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), ready: Arc::default(), held: Vec::new() }
    }

    /// Registers the task to wake when an exchange can make progress.
    pub(super) fn register(&self, task: &Waker) {
        self.ready.register(task);
    }

    pub(super) fn begin(&mut self, id: ExchangeId, exchange: X) {
        while self.slots.len() <= id.slot() {
            let signal = Arc::new(ExchangeSignal::new(self.slots.len(), Arc::clone(&self.ready)));
            let waker = Waker::from(Arc::clone(&signal));
            self.slots.push(Slot { exchange: None, signal, waker });
        }
        // An entry here belongs to an earlier exchange.
        if let Some(at) = self.held.iter().position(|slot| *slot == id.slot()) {
            self.slots[self.held.swap_remove(at)].signal.clear();
        }
        let slot = &mut self.slots[id.slot()];
        slot.exchange = Some(ActiveExchange { id, exchange, has_head: false });
        slot.signal.set();
    }

    pub(super) fn abort(&mut self, id: ExchangeId) {
        if let Some(slot) = self.slots.get_mut(id.slot())
            && slot.exchange.as_ref().is_some_and(|under_way| under_way.id == id)
        {
            slot.exchange = None;
        }
    }

    pub(super) fn abort_all(&mut self) {
        for slot in &mut self.slots {
            slot.exchange = None;
        }
    }

    /// Polls the exchange that has been ready the longest and passes one chunk to `endpoint`,
    /// except a body chunk while the endpoint is congested. Returns `false` if no exchange is
    /// ready.
    pub(super) fn step(&mut self, endpoint: &mut impl HttpEndpoint, now: Instant) -> bool {
        let congested = endpoint.is_congested();
        if !congested {
            for slot in self.held.drain(..) {
                self.slots[slot].signal.put_back();
            }
        }
        let Some(number) = self.ready.next() else { return false };
        let Slot { exchange, signal, waker } = &mut self.slots[number];
        let Some(under_way) = exchange else {
            signal.clear();
            return true;
        };
        if congested && under_way.has_head {
            // The signal stays set: the slot is in exactly one of the two lists.
            self.held.push(number);
            return true;
        }
        signal.clear();
        match under_way.poll(&mut Context::from_waker(waker), endpoint, now) {
            Poll::Pending => {}
            // The other ready exchanges are polled before this one again.
            Poll::Ready(Progress::Some) => signal.set(),
            Poll::Ready(Progress::End) => *exchange = None,
        }
        true
    }
}

enum Progress {
    Some,
    End,
}

impl<X: Exchange> ActiveExchange<X> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        endpoint: &mut impl HttpEndpoint,
        now: Instant,
    ) -> Poll<Progress> {
        let Self { id, exchange, has_head } = self;
        let failure = if *has_head {
            match ready!(exchange.poll_body(cx)) {
                Ok(Some(bytes)) => {
                    endpoint.handle_body(*id, bytes, now);
                    return Poll::Ready(Progress::Some);
                }
                Ok(None) => {
                    endpoint.handle_body_end(*id, now);
                    return Poll::Ready(Progress::End);
                }
                Err(failure) => failure,
            }
        } else {
            match ready!(exchange.poll_head(cx)) {
                Ok(head) => {
                    *has_head = true;
                    endpoint.handle_response(*id, &head, now);
                    return Poll::Ready(Progress::Some);
                }
                Err(failure) => failure,
            }
        };
        endpoint.handle_exchange_failed(*id, failure, now);
        Poll::Ready(Progress::End)
    }
}

impl<X> fmt::Debug for Exchanges<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let under_way = self.slots.iter().filter_map(|slot| slot.exchange.as_ref());
        f.debug_list().entries(under_way.map(|exchange| exchange.id)).finish()
    }
}

// ------------------------------------------------------------------ ready queue

/// Queue of ready slots, so that the cost of a wake-up does not depend on the number of idle
/// exchanges.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    slots: VecDeque<usize>,
    task: Option<Waker>,
}

impl ReadyQueue {
    // A panic elsewhere leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the task to wake.
    pub(super) fn register(&self, task: &Waker) {
        let mut inner = self.lock();
        let known = inner.task.as_ref().is_some_and(|known| known.will_wake(task));
        if !known {
            let old = inner.task.replace(task.clone());
            drop(inner);
            drop(old);
        }
    }

    /// Takes the slot that has been ready the longest.
    pub(super) fn next(&self) -> Option<usize> {
        self.lock().slots.pop_front()
    }

    fn push(&self, slot: usize) {
        let task = {
            let mut inner = self.lock();
            inner.slots.push_back(slot);
            inner.task.clone()
        };
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// Queues a slot as ready, once until it is polled.
#[derive(Debug)]
pub(super) struct ExchangeSignal {
    slot: usize,
    is_set: AtomicBool,
    ready: Arc<ReadyQueue>,
}

impl ExchangeSignal {
    pub(super) const fn new(slot: usize, ready: Arc<ReadyQueue>) -> Self {
        Self { slot, is_set: AtomicBool::new(false), ready }
    }

    /// Queues the slot without waking the task, which is already running.
    pub(super) fn set(&self) {
        if !self.is_set.swap(true, Ordering::AcqRel) {
            self.ready.lock().slots.push_back(self.slot);
        }
    }

    /// Queues the slot again after it was taken but not polled.
    pub(super) fn put_back(&self) {
        self.ready.lock().slots.push_back(self.slot);
    }

    /// Clears the signal: a later wake-up queues the slot again.
    pub(super) fn clear(&self) {
        // A swap, not a store, so that everything before an earlier wake-up is visible from here.
        self.is_set.swap(false, Ordering::AcqRel);
    }
}

impl Wake for ExchangeSignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_set.swap(true, Ordering::AcqRel) {
            self.ready.push(self.slot);
        }
    }
}
