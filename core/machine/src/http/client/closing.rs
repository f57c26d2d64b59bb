use mcp_sansio_sync::Arc;

use crate::Instant;
use crate::peer::TransportFailure;

use super::exchanges::{Exchange, Purpose, Receiving};
use super::{Client, Transport};

/// The progress of closing the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CloseState {
    /// The connection is open.
    #[default]
    Open,
    /// The session is being deleted; the server has until this time to respond.
    DeletingSession(Instant),
    /// The connection is closed and nothing is left to do.
    Done,
}

impl CloseState {
    pub(super) const fn deadline(self) -> Option<Instant> {
        match self {
            Self::DeletingSession(until) => Some(until),
            _ => None,
        }
    }
}

impl Client {
    /// The connection is closed: aborts all exchanges, and deletes the session of a legacy server.
    pub(super) fn shut_down(&mut self, now: Instant) {
        match self.close_state {
            CloseState::Open => {}
            CloseState::DeletingSession(_) if self.exchanges.len() == 0 => {
                self.close_state = CloseState::Done;
                return;
            }
            _ => return,
        }
        self.queue.clear();
        self.exchanges.pauses.clear();
        for exchange in self.exchanges.all(|_| true) {
            self.abort(exchange);
        }
        self.close_state = CloseState::Done;
        // MCP 2025-11-25 basic/transports#session-management [SESS-010]
        if self.legacy.key.is_some() && matches!(self.transport, Transport::Streamable) {
            let exchange = Exchange::new(Purpose::End, Arc::clone(&self.url));
            self.send(exchange, now);
            self.legacy.key = None;
            self.close_state = CloseState::DeletingSession(now + self.options.limits.closing_wait);
        }
    }

    /// Aborts the remaining exchanges if the time to delete the session has elapsed.
    pub(super) fn handle_close_timeout(&mut self, now: Instant) {
        if let CloseState::DeletingSession(until) = self.close_state
            && until <= now
        {
            for exchange in self.exchanges.all(|_| true) {
                self.abort(exchange);
            }
            self.close_state = CloseState::Done;
        }
    }

    /// Aborts exchanges whose linger time has elapsed, and lets those linger whose request has
    /// ended.
    pub(super) fn sweep(&mut self, now: Instant) {
        let due = |exchange: &Exchange| exchange.cut_off_at.is_some_and(|at| at <= now);
        for exchange in self.exchanges.all(due) {
            match self.exchanges.get(exchange) {
                Some(Exchange { receiving: Receiving::ErrorBody(_), .. }) => {
                    self.complete_error_response(exchange, now);
                }
                // Other messages wait for its place.
                Some(it) if it.is_control() => {
                    self.post_failed(exchange, TransportFailure::Broken, now);
                }
                _ => {}
            }
            self.abort(exchange);
        }
        let peer = &self.peer;
        let forgotten = self.exchanges.all(|exchange| {
            let given_up = exchange.request_id().is_some_and(|id| !peer.is_pending(id));
            given_up && exchange.cut_off_at.is_none()
        });
        for exchange in forgotten {
            self.linger(exchange, now);
        }
    }
}
