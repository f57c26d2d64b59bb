use mcp_sansio_sync::Arc;

use crate::Instant;

use super::exchanges::{Exchange, Purpose};
use super::{Client, Transport};

/// How far the end is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CloseState {
    /// The connection is not over.
    #[default]
    Open,
    /// The server is told, and has until then.
    DeletingSession(Instant),
    /// Nothing is left to do.
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
    /// The connection is over: everything that is under way is cut off, and the server of a session
    /// is told.
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

    /// The time that the server had to take note of the end may be over.
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

    /// Cuts off what lingered long enough, and lets linger what nobody waits for any more.
    pub(super) fn sweep(&mut self, now: Instant) {
        let due = |exchange: &Exchange| exchange.cut_off_at.is_some_and(|at| at <= now);
        for exchange in self.exchanges.all(due) {
            self.abort(exchange);
        }
        let peer = &self.peer;
        let forgotten = self.exchanges.all(|exchange| {
            let given_up = exchange.request_id().is_some_and(|id| !peer.is_pending(id));
            given_up && exchange.cut_off_at.is_none()
        });
        for exchange in forgotten {
            self.let_linger(exchange, now);
        }
    }
}
