//! Exchanges that wait for something on this side, such as a user who signs in.

use crate::Instant;
use crate::http::ExchangeId;
use crate::peer::TransportFailure;

use super::Client;
use super::exchanges::{Exchange, Receiving};

impl Client {
    /// The request of an exchange waits for something on this side, such as a user who signs in:
    /// its time stands still, be it a call, the opening of the connection, or a keep-alive ping. So
    /// does the time of the requests that wait behind it. Cancelling and closing work as ever.
    ///
    /// It ends with [`resume`](Self::resume), with [`refuse`](Self::refuse), and with anything that
    /// comes for the exchange. Nothing happens if that is paused already, or over.
    pub fn pause(&mut self, exchange: ExchangeId, now: Instant) {
        let waits = |exchange: &&Exchange| {
            matches!(exchange.receiving, Receiving::Head) && exchange.cut_off_at.is_none()
        };
        if let Some(waiting) = self.exchanges.get(exchange).filter(waits) {
            if let Some(request) = waiting.request_id() {
                self.peer.pause_call(request, now);
            }
            self.exchanges.set_paused(exchange, true);
        }
        self.pump(now);
    }

    /// The request of an exchange that was [paused](Self::pause) goes on, with the time that it had
    /// left. Nothing happens if it was not.
    pub fn resume(&mut self, exchange: ExchangeId, now: Instant) {
        self.resume_exchange(exchange, now);
        self.pump(now);
    }

    /// An exchange comes to nothing, for a reason that whoever stands between this machine and the
    /// network has found, such as [`TransportFailure::AuthorizationFailed`]. It is over: nothing of
    /// it is to be handed in any more. Nothing happens if it was over already.
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
    }

    /// While a request stands still, so do those behind it: they may wait for nothing else.
    pub(super) fn pause_queue(&mut self, now: Instant) {
        let still = self.exchanges.any_paused();
        // Requests come back to the queue, too: those of a session that is lost, say.
        let grown = core::mem::take(&mut self.queue.grown) && still;
        if still == core::mem::replace(&mut self.queue.paused, still) && !grown {
            return;
        }
        for request in self.queue.request_ids() {
            if still {
                self.peer.pause_call(request, now);
            } else {
                self.peer.resume_call(request, now);
            }
        }
    }
}
