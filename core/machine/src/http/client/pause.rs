//! Exchanges that wait for something on this side, such as a user who signs in.

use crate::Instant;
use crate::http::ExchangeId;
use crate::peer::TransportFailure;

use super::Client;
use super::exchanges::{Exchange, Receiving};

impl Client {
    /// Pauses an exchange whose request waits for something on this side, such as a user who signs
    /// in. The timeouts of the request stop, be it a call, the opening of the connection or a
    /// keep-alive ping, and so do those of the requests queued behind it. Cancelling and closing
    /// are still possible.
    ///
    /// The pause ends with [`resume`](Self::resume), with [`refuse`](Self::refuse), and with any
    /// input for the exchange. It has no effect if the exchange is already paused or has ended.
    pub fn pause(&mut self, exchange: ExchangeId, now: Instant) {
        let waits = |exchange: &&Exchange| {
            let wanted = exchange.cut_off_at.is_none() || exchange.is_control();
            matches!(exchange.receiving, Receiving::Head) && wanted
        };
        if let Some(waiting) = self.exchanges.get(exchange).filter(waits) {
            if let Some(request) = waiting.request_id() {
                self.peer.pause_call(request, now);
            }
            self.exchanges.set_paused(exchange, true);
            self.time_control(exchange, None);
        }
        self.pump(now);
    }

    /// Resumes an exchange that was [paused](Self::pause), with the time that it had left. It has
    /// no effect if the exchange is not paused.
    pub fn resume(&mut self, exchange: ExchangeId, now: Instant) {
        self.resume_exchange(exchange, now);
        self.pump(now);
    }

    /// Fails an exchange for a reason found by a layer between this machine and the network, such
    /// as [`TransportFailure::AuthorizationFailed`]. The exchange has ended and takes no further
    /// inputs. It has no effect if the exchange had already ended.
    pub fn refuse(&mut self, exchange: ExchangeId, failure: TransportFailure, now: Instant) {
        self.receive_failure(exchange, failure, now);
        self.pump(now);
    }

    pub(super) fn resume_exchange(&mut self, id: ExchangeId, now: Instant) {
        let Some(exchange) = self.exchanges.get(id) else { return };
        if !exchange.paused {
            return;
        }
        if let Some(request) = exchange.request_id() {
            self.peer.resume_call(request, now);
        }
        self.exchanges.set_paused(id, false);
        self.time_control(id, Some(now + self.peer.call_timeout()));
    }

    /// Sets when a notification or response without an answer is given up.
    fn time_control(&mut self, id: ExchangeId, cut_off_at: Option<Instant>) {
        if let Some(exchange) = self.exchanges.get_mut(id).filter(|it| it.is_control()) {
            exchange.cut_off_at = cut_off_at;
        }
    }

    /// Pauses the requests that are queued, or wait for a list of tools, while an exchange is paused,
    /// because they may wait for the same thing.
    pub(super) fn pause_queue(&mut self, now: Instant) {
        let still = self.exchanges.any_paused();
        // Requests may return to the queue too, for example when a session is lost.
        let grown = core::mem::take(&mut self.queue.grown) && still;
        if still == core::mem::replace(&mut self.queue.paused, still) && !grown {
            return;
        }
        for request in self.queue.request_ids().chain(self.tools.waiting_calls()) {
            if still {
                self.peer.pause_call(request, now);
            } else {
                self.peer.resume_call(request, now);
            }
        }
    }
}
