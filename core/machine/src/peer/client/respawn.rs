//! A connection that outlives the process of its server.

use crate::peer::calls::Purpose;
use crate::peer::event::{Cancelled, Event, Failure, Subject};
use crate::peer::handle::{InputHandle, InputSource, RequestHandle};
use crate::peer::outgoing::MetaParts;
use crate::protocol::Method;
use crate::{Era, Instant};

use super::Client;
use super::opening::State;

impl Client {
    /// Reports that the stream of an open connection has ended, and that a new process of the same
    /// server will be started. Call it in place of [`handle_eof`](Self::handle_eof), after passing
    /// in all frames received before.
    ///
    /// Every call ends with [`Failure::ConnectionLost`], because only the application knows whether
    /// it may run twice. Subscriptions stay open. Until the connection is open again there is no
    /// [`session`](Self::session), and calls are refused with
    /// [`CommandError::NotOpen`](crate::peer::CommandError::NotOpen).
    ///
    /// Returns `false` if the connection was never open or is closed: nothing changed.
    // MCP 2026-07-28 basic/transports/stdio#unexpected-termination [STDIO-019]
    pub fn suspend(&mut self) -> bool {
        let before = self.era();
        // The process may have ended before the connection was open again.
        let Some(era) = before.or(self.suspended).filter(|_| !self.is_closed()) else {
            return false;
        };
        self.session = None;
        self.suspended = Some(era);
        (self.state, self.handshake_refused, self.insisted) = (State::Over, None, false);
        self.lose_calls();
        self.connection.observed.all_cancelled();
        self.withdraw_requests();
        self.connection.outbox.clear();
        self.connection.stop_keep_alive();
        true
    }

    /// Ends the calls that the process of the server had, except for subscriptions.
    pub(super) fn lose_calls(&mut self) {
        let mut slot = 0;
        while let Some(key) = self.connection.calls.first_from(slot) {
            slot = key.slot + 1;
            let purpose = self.connection.calls.get(key).map(|call| call.purpose);
            if matches!(purpose, Some(Purpose::Listen | Purpose::Waiting)) {
                continue;
            }
            let Some(call) = self.connection.calls.remove(key) else { break };
            if call.purpose == Purpose::Application {
                self.drop_round(&call);
                self.connection.end_call(key, Failure::ConnectionLost);
            }
        }
        self.connection.observed.lost();
        self.forget_pending_subscriptions();
    }

    /// Opens a [suspended](Self::suspend) connection on the stream of the new process: later output
    /// is for that stream, whose frames need a new decoder. The connection reports
    /// [`Event::Opened`] again, and closes if it cannot be opened. The log level and the
    /// subscriptions are restored; they end with [`Failure::ConnectionLost`] if the era of the
    /// server has changed.
    ///
    /// Has no effect on a connection that is not suspended.
    pub fn resume(&mut self, now: Instant) {
        if let Some(era) = self.suspended
            && self.state == State::Over
            && !self.is_closed()
        {
            self.open(Some(era), now);
        }
    }

    /// Restores the subscriptions on the stream of a new process; `before` was the era of the old
    /// one.
    // MCP 2026-07-28 basic/patterns/subscriptions#graceful-closure [STDIO-020]: the server keeps no
    // state of them.
    pub(super) fn restore_subscriptions(&mut self, before: Era, now: Instant) {
        let is_same = self.session.as_ref().is_some_and(|it| it.revision().era() == before);
        let mut slot = 0;
        while let Some(key) = self.connection.calls.first_from(slot) {
            slot = key.slot + 1;
            let purpose = self.connection.calls.get(key).map(|call| call.purpose);
            match purpose {
                Some(Purpose::Listen) if is_same && self.send_listen_again(key, now) => {}
                Some(Purpose::Waiting) if is_same => {}
                Some(Purpose::Listen | Purpose::Waiting) => {
                    self.connection.calls.remove(key);
                    self.subscriptions.retain(|(known, _)| *known != key);
                    self.connection.end_call(key, Failure::ConnectionLost);
                }
                _ => {}
            }
        }
    }

    /// Sends the request of a listen stream again with a new id.
    pub(super) fn send_listen_again(
        &mut self,
        key: mcp_sansio_collections::Key,
        now: Instant,
    ) -> bool {
        let parts = MetaParts { fixed: self.request_meta.as_ref(), ..MetaParts::default() };
        let nothing_more = |out: &mut alloc::string::String| {
            out.push('{');
            Ok(())
        };
        self.connection.repeat_call(key, parts, nothing_more, now).is_ok()
    }

    /// Withdraws the requests of the server, which no longer waits for their responses.
    pub(super) fn withdraw_requests(&mut self) {
        let mut slot = 0;
        while let Some(key) = self.connection.requests.find_from(slot, |_| true) {
            slot = key.slot + 1;
            let Some(request) = self.connection.requests.remove(key) else { break };
            let asks_host = matches!(
                request.method,
                Some(Method::SamplingCreateMessage | Method::ElicitationCreate | Method::RootsList)
            );
            let subject = if asks_host {
                Subject::Input(InputHandle(InputSource::Request(key)))
            } else {
                Subject::Request(RequestHandle::new(key))
            };
            let event = Event::Cancelled(Cancelled { subject, reason: None });
            self.connection.events.push_back(event);
        }
    }
}
