//! What leaves, exchange by exchange.

use core::time::Duration;

use crate::Instant;
use crate::http::{Content, ExchangeId, ResponseHead, Status};
use crate::peer::outbox::Channel;
use crate::peer::slab::Key;

use super::exchange::{State, Transmit};
use super::session::STANDALONE;
use super::{Server, ServerOptions};

/// The most that is handed out at once, in bytes: one write's worth.
const CHUNK: usize = 64 * 1024;

/// A comment that shows life.
const COMMENT: &[u8] = b":\n\n";

impl Server {
    /// An exchange with something new to send, each once.
    #[must_use]
    pub fn poll_ready(&mut self) -> Option<ExchangeId> {
        while let Some(exchange) = self.ready.pop_front() {
            if let Some(entry) = self.exchanges.get_mut(exchange.0) {
                entry.queued = false;
                return Some(exchange);
            }
        }
        None
    }

    /// What to send next on an exchange; `None` when there is nothing now, or the exchange is over.
    ///
    /// After [`Transmit::Respond`], [`Transmit::Finish`] and [`Transmit::Abort`] it is.
    pub fn poll_transmit(&mut self, exchange: ExchangeId, now: Instant) -> Option<Transmit<'_>> {
        let key = exchange.0;
        let entry = self.exchanges.get_mut(key)?;
        match entry.state {
            State::Waiting => return None,
            State::Whole(_) => {
                let State::Whole(response) = self.exchanges.remove(key)?.state else {
                    return None;
                };
                return Some(Transmit::Respond(response));
            }
            State::Opening => {
                entry.state = if entry.closes { State::Closing } else { State::Streaming };
                entry.opened_at = Some(now);
                let mut head = ResponseHead::new(Status::OK, Some(Content::EventStream));
                head.session = entry.session;
                return Some(Transmit::Open(head));
            }
            State::Aborted => {
                self.end_exchange_now(key);
                return Some(Transmit::Abort);
            }
            State::Streaming | State::Closing => {}
        }
        if self.trim_and_look(key) {
            let entry = self.exchanges.get_mut(key)?;
            let connection = self.connections.get_mut(entry.connection?)?;
            let stream = connection.stream(entry.stream)?;
            let chunk = stream.log.read(stream.taken, CHUNK);
            stream.taken += chunk.len() as u64;
            return Some(Transmit::Chunk(chunk));
        }
        if self.is_complete(key) {
            self.finish_exchange(key, now);
            return Some(Transmit::Finish);
        }
        let entry = self.exchanges.get_mut(key)?;
        core::mem::take(&mut entry.comment_due).then_some(Transmit::Chunk(COMMENT))
    }

    /// Drops what the reader has taken, as far as it is not kept; whether there is more for it.
    fn trim_and_look(&mut self, key: Key) -> bool {
        let limits = &self.options.limits;
        let Some(entry) = self.exchanges.get(key) else { return false };
        let Some(connection) = entry.connection.and_then(|key| self.connections.get_mut(key))
        else {
            return false;
        };
        let Some(stream) = connection.stream(entry.stream) else { return false };
        let before = stream.log.len();
        if stream.resumable {
            stream.log.trim(stream.taken, limits.replay_events_max, limits.replay_bytes_max);
        } else {
            stream.log.trim(stream.taken, 0, 0);
        }
        self.logged -= before - stream.log.len();
        stream.unread() > 0
    }

    /// Whether nothing more will come on an exchange.
    fn is_complete(&mut self, key: Key) -> bool {
        let Some(entry) = self.exchanges.get(key) else { return false };
        let stream = entry
            .connection
            .and_then(|connection| self.connections.get_mut(connection))
            .and_then(|connection| connection.stream(entry.stream));
        matches!(entry.state, State::Closing) || stream.is_none_or(|stream| stream.done)
    }

    /// The body of an exchange is complete.
    fn finish_exchange(&mut self, key: Key, now: Instant) {
        self.exchange_deadlines.clear(key.slot);
        let Some(entry) = self.exchanges.remove(key) else { return };
        let Some(connection_key) = entry.connection else { return };
        let Some(connection) = self.connections.get_mut(connection_key) else { return };
        let Some(stream) = connection.stream(entry.stream) else { return };
        stream.reader = None;
        let done = stream.done;
        self.leave_session(connection_key);
        if done {
            self.keep_finished(connection_key, entry.stream, now);
        }
        self.retire_connection(connection_key);
    }

    /// Whether the next thing to send on an exchange is [`Transmit::Abort`]. For an adapter whose
    /// HTTP library asks for nothing while the client takes nothing: it breaks the connection off
    /// and calls [`handle_disconnect`](Self::handle_disconnect).
    #[must_use]
    pub fn is_aborted(&self, exchange: ExchangeId) -> bool {
        self.exchanges.get(exchange.0).is_some_and(|entry| matches!(entry.state, State::Aborted))
    }

    /// The client has gone: nobody takes the response of an exchange any more.
    pub fn handle_disconnect(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(connection) = self.end_exchange_now(exchange.0) else { return };
        self.detached(connection, now);
    }

    /// A stream has lost its reader.
    fn detached(&mut self, (key, number): (Key, u32), now: Instant) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.session.is_none() {
            // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-017]
            connection.machine.handle_channel_closed(Channel(number), now);
            self.drop_stream(key, number);
            self.settle(key, now);
        } else if connection.is_event_stream() {
            // There is no other way to the client.
            self.end_session(key, now);
        } else {
            // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-011]: not a
            // cancellation.
            self.leave_session(key);
            let done = self.connections.get_mut(key).and_then(|c| Some(c.stream(number)?.done));
            if done == Some(true) {
                self.keep_finished(key, number, now);
            }
        }
    }

    /// Takes an exchange away; the stream that it carried.
    fn end_exchange_now(&mut self, key: Key) -> Option<(Key, u32)> {
        self.exchange_deadlines.clear(key.slot);
        let entry = self.exchanges.remove(key)?;
        let connection = self.connections.get_mut(entry.connection?)?;
        let stream = connection.stream(entry.stream)?;
        // Another one may have taken over.
        (stream.reader == Some(key)).then(|| {
            stream.reader = None;
            (entry.connection.unwrap_or(Key::NONE), entry.stream)
        })
    }

    /// Ends the response of an exchange that carries nothing any more.
    pub(super) fn end_exchange(&mut self, key: Key) {
        let connection = self.exchanges.get_mut(key).and_then(|entry| {
            entry.state = match entry.state {
                State::Waiting | State::Opening => State::Opening,
                _ => State::Closing,
            };
            entry.connection.take()
        });
        if let Some(connection) = connection {
            self.leave_session(connection);
        }
        self.make_ready(key);
    }

    /// A reader is too far behind: its connection goes, the stream stays where it can be resumed.
    pub(super) fn cut_off(&mut self, key: Key, now: Instant) {
        let Some(entry) = self.exchanges.get_mut(key) else { return };
        entry.state = State::Aborted;
        let (connection, number) = (entry.connection.take(), entry.stream);
        self.make_ready(key);
        let Some(connection) = connection else { return };
        if let Some(stream) = self.connections.get_mut(connection).and_then(|c| c.stream(number)) {
            stream.reader = None;
            self.detached((connection, number), now);
        }
    }

    /// Closes the connection of a stream that can be resumed, and says when to come back.
    pub(super) fn close_reader(&mut self, key: Key, number: u32, retry: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if !connection.polls() || connection.is_event_stream() {
            return;
        }
        let Some(stream) = connection.stream(number) else { return };
        let Some(reader) = stream.reader.filter(|_| stream.resumable) else { return };
        let before = stream.log.len();
        stream.open();
        stream.push_retry(retry);
        self.logged += stream.log.len() - before;
        if let Some(entry) = self.exchanges.get_mut(reader) {
            match entry.state {
                State::Waiting | State::Opening => {
                    entry.state = State::Opening;
                    entry.closes = true;
                }
                _ => entry.state = State::Closing,
            }
        }
        self.make_ready(reader);
    }

    /// Ends the streams of a connection that stand open for what may come.
    pub(super) fn close_open_streams(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.session.is_none() {
            return connection.machine.finish_listening();
        }
        let Some(stream) = connection.stream(STANDALONE) else { return };
        let reader = stream.reader.take();
        if let Some(reader) = reader {
            self.end_exchange(reader);
        }
    }

    pub(super) fn make_ready(&mut self, key: Key) {
        if let Some(entry) = self.exchanges.get_mut(key)
            && !core::mem::replace(&mut entry.queued, true)
        {
            self.ready.push_back(ExchangeId(key));
        }
    }

    // ------------------------------------------------------------------ time

    /// A request waits for its answer: after a while its response opens all the same.
    pub(super) fn arm_waiting(&mut self, key: Key, now: Instant) {
        let waiting = self.exchanges.get(key).is_some_and(|e| matches!(e.state, State::Waiting));
        if let Some(pause) = self.options.timeouts.open_stream.filter(|_| waiting) {
            self.exchange_deadlines.set(key.slot, now + pause);
        }
    }

    /// A stream is open: after a while of silence it shows life.
    pub(super) fn arm_streaming(&mut self, key: Key, now: Instant) {
        let ServerOptions { timeouts, .. } = &self.options;
        let pauses = [timeouts.keep_alive, timeouts.poll_after];
        if let Some(pause) = pauses.into_iter().flatten().min() {
            self.exchange_deadlines.set(key.slot, now + pause);
        }
    }

    pub(super) fn exchange_due(&mut self, key: Key, now: Instant) {
        let Some(entry) = self.exchanges.get_mut(key) else { return };
        let (connection_key, number) = (entry.connection, entry.stream);
        let Some(connection_key) = connection_key else { return };
        match entry.state {
            State::Waiting => {
                entry.state = State::Opening;
                let Some(connection) = self.connections.get_mut(connection_key) else { return };
                let Some(stream) = connection.stream(number) else { return };
                let before = stream.log.len();
                stream.open();
                self.logged += stream.log.len() - before;
                self.make_ready(key);
                self.arm_streaming(key, now);
            }
            State::Streaming => {
                let opened = entry.opened_at.unwrap_or(now);
                let poll = self.options.timeouts.poll_after.is_some_and(|d| opened + d <= now);
                if poll {
                    self.close_reader(connection_key, number, self.options.timeouts.retry);
                }
                let Some(entry) = self.exchanges.get_mut(key) else { return };
                entry.comment_due = true;
                self.make_ready(key);
                self.arm_streaming(key, now);
            }
            _ => {}
        }
    }

    pub(super) fn connection_due(&mut self, key: Key, now: Instant) {
        let timeouts = &self.options.timeouts;
        let Some(connection) = self.connections.get_mut(key) else { return };
        if let Some(session) = &mut connection.session {
            let busy = session.open > 0 || connection.machine.requests_in_flight() > 0;
            let idle = if session.confirmed {
                timeouts.session_idle
            } else {
                timeouts.session_unconfirmed
            };
            if busy {
                session.last_used = now;
            } else if session.last_used + idle <= now {
                return self.end_session(key, now);
            }
        }
        connection.machine.handle_timeout(now);
        self.settle(key, now);
    }

    /// Sets the next deadline of a connection.
    pub(super) fn arm_connection(&mut self, key: Key, now: Instant) {
        let timeouts = &self.options.timeouts;
        let Some(connection) = self.connections.get(key) else { return };
        let idle = connection.session.as_ref().map(|session| {
            let idle = if session.confirmed {
                timeouts.session_idle
            } else {
                timeouts.session_unconfirmed
            };
            (session.last_used + idle).max(now + Duration::from_millis(1))
        });
        let due = [connection.machine.poll_timeout(), idle].into_iter().flatten().min();
        match due {
            Some(due) => self.connection_deadlines.set(key.slot, due),
            None => self.connection_deadlines.clear(key.slot),
        }
    }
}
