use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use mcp_sansio::Instant;
use mcp_sansio::http::ExchangeId;
use mcp_sansio_handlers::endpoint::HttpEndpoint;

use super::exchange::Exchange;
use super::ready_queue::{ExchangeSignal, ReadyQueue};

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
