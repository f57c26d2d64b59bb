//! Timeouts of sessions and exchanges.

use core::time::Duration;

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::http::media::Accepted;

use super::exchange::State;
use super::options::ResponseMode;
use super::{Server, ServerTimeouts};

/// The minimum interval between two deadlines of the same object, so that no driver can busy-loop.
pub(super) const LEAST: Duration = Duration::from_millis(1);

impl Server {
    /// Returns the next time at which [`handle_timeout`](Self::handle_timeout) must be called. It
    /// may change with every call of another method.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let finished = self.finished.front().map(|finished| finished.until);
        let deadlines = [&self.connection_deadlines, &self.exchange_deadlines];
        let first = deadlines.into_iter().filter_map(|deadlines| Some(deadlines.first()?.0));
        let shared = self.shared.as_ref().and_then(|shared| shared.deadline());
        first.chain(finished).chain(shared).min()
    }

    /// Handles the timeouts that are due at `now`. Extra calls have no effect.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((due, slot)) = self.connection_deadlines.first()
            && due <= now
        {
            self.connection_deadlines.clear(slot);
            if let Some(key) = self.connections.key_at(slot) {
                self.connection_due(key, now);
            }
        }
        while let Some((due, slot)) = self.exchange_deadlines.first()
            && due <= now
        {
            self.exchange_deadlines.clear(slot);
            if let Some(key) = self.exchanges.key_at(slot) {
                self.exchange_due(key, now);
            }
        }
        self.give_up_finished(now);
        if self.shared.is_some() {
            self.handle_shared_timeout(now);
        }
    }

    /// Opens the response to a pending request as a stream, or sets the time to do so, if its client
    /// reads streams.
    pub(super) fn arm_waiting(
        &mut self,
        key: Key,
        (mode, accepted): (ResponseMode, Accepted),
        now: Instant,
    ) {
        let waiting = self.exchanges.get(key).is_some_and(|e| matches!(e.state, State::Waiting));
        let pause = self.options.timeouts.open_stream.filter(|_| accepted.event_stream && waiting);
        match (mode, pause) {
            (ResponseMode::Stream, _) => self.open_stream(key),
            (ResponseMode::JsonWhenAlone, Some(pause)) => {
                self.exchange_deadlines.set(key.slot, now + pause);
            }
            _ => {}
        }
    }

    /// Sets the next deadline of an open stream: a keep-alive comment when it is idle, or the time
    /// at which its connection may be closed.
    pub(super) fn arm_streaming(&mut self, key: Key, now: Instant) {
        let ServerTimeouts { keep_alive, poll_after, .. } = &self.options.timeouts;
        let Some(entry) = self.exchanges.get(key) else { return };
        let comment = keep_alive.map(|pause| entry.sent_at + pause);
        let close = poll_after.filter(|_| entry.polls).map(|pause| entry.opened_at + pause);
        match [comment, close, entry.expires, self.read_due(key)].into_iter().flatten().min() {
            Some(due) => self.exchange_deadlines.set(key.slot, due.max(now + LEAST)),
            None => self.exchange_deadlines.clear(key.slot),
        }
    }

    fn exchange_due(&mut self, key: Key, now: Instant) {
        let ServerTimeouts { keep_alive, poll_after, retry, .. } = self.options.timeouts;
        let Some(entry) = self.exchanges.get_mut(key) else { return };
        if entry.expires.is_some_and(|deadline| deadline <= now) {
            return self.expire(key, now);
        }
        let (Some(connection), number) = (entry.connection, entry.stream) else { return };
        let read_due = self.read_due(key);
        if read_due.is_some_and(|due| due <= now) {
            return self.replay_due(connection, number, now);
        }
        let Some(entry) = self.exchanges.get_mut(key) else { return };
        match entry.state {
            State::Waiting => self.open_stream(key),
            State::Streaming => {
                // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [SSE-014]
                if keep_alive.is_some_and(|pause| entry.sent_at + pause <= now) {
                    entry.sent_at = now;
                    entry.comment_due = true;
                }
                let stream = entry.stream;
                // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-006]
                if entry.polls && poll_after.is_some_and(|pause| entry.opened_at + pause <= now) {
                    // Once: a stream that has ended is not closed, however long its end is unread.
                    entry.polls = false;
                    self.close_reader(connection, stream, retry);
                }
                self.make_ready(key);
                self.arm_streaming(key, now);
            }
            _ => self.rest(key),
        }
    }

    /// Opens the response of a pending request as an event stream.
    pub(super) fn open_stream(&mut self, key: Key) {
        let Some(entry) = self.exchanges.get_mut(key) else { return };
        let (Some(connection), State::Waiting) = (entry.connection, &entry.state) else { return };
        entry.state = State::Opening;
        let number = entry.stream;
        self.rest(key);
        if let Some(stream) = self.stream_mut(connection, number) {
            let before = stream.log.len();
            stream.open();
            let after = stream.log.len();
            self.log_changed(connection, before, after);
        }
        self.record_ids(connection, number);
        self.make_ready(key);
    }

    /// Returns the last use of a session, and how long it may be idle.
    fn patience(&self, key: Key) -> Option<(Instant, Duration)> {
        let timeouts = &self.options.timeouts;
        let connection = self.connections.get(key)?;
        let session = connection.session.as_ref()?;
        // A short timeout for clients that never complete the handshake leaves room for others.
        let idle = if connection.machine.is_initialized() {
            timeouts.session_idle
        } else {
            timeouts.session_unconfirmed
        };
        Some((session.last_used, idle))
    }

    fn connection_due(&mut self, key: Key, now: Instant) {
        let patience = self.patience(key);
        let Some(connection) = self.connections.get_mut(key) else { return };
        if let (Some(session), Some((last_used, idle))) = (&mut connection.session, patience) {
            if session.open > 0 || connection.machine.requests_in_flight() > 0 {
                session.last_used = now;
                if self.shared.is_some() {
                    self.touch_shared(key, now);
                }
            } else if last_used + idle <= now {
                return self.end_session(key, now);
            }
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.machine.handle_timeout(now);
        self.pump(key, now);
    }

    /// Sets the next deadline of a connection.
    pub(super) fn arm_connection(&mut self, key: Key, now: Instant) {
        let idle = self.patience(key).map(|(last_used, idle)| (last_used + idle).max(now + LEAST));
        let Some(connection) = self.connections.get(key) else { return };
        match [connection.machine.poll_timeout(), idle].into_iter().flatten().min() {
            Some(due) => self.connection_deadlines.set(key.slot, due),
            None => self.connection_deadlines.clear(key.slot),
        }
    }
}
