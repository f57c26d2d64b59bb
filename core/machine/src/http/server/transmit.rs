//! Sends the output of exchanges.

use alloc::vec::Vec;
use core::time::Duration;

use mcp_sansio_collections::Key;

use crate::Instant;
use crate::http::SessionId;
use crate::http::{Content, ExchangeId, Response, ResponseHead, Status};
use crate::peer::outbox::Channel;

use super::exchange::{Exchange, ServerTransmit, State};
use super::sessions::STANDALONE;
use super::sessions::Transport;
use super::shared::is_standalone;
use super::{Connection, Server};

/// The keep-alive comment.
const COMMENT: &[u8] = b":\n\n";

impl Server {
    /// Returns an exchange that has something new to send, each once.
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

    /// Returns the information that a recorder needs before it polls an exchange: the HTTP+SSE
    /// session of the exchange, whose id is in its first event. Returns `None` if polling has no
    /// effect.
    pub(crate) fn session_to_hide(&self, exchange: ExchangeId) -> Option<Option<SessionId>> {
        let entry = self.exchanges.get(exchange.0)?;
        if matches!(entry.state, State::Waiting | State::Reading) {
            return None;
        }
        let connection = entry.connection.and_then(|key| self.connections.get(key));
        let session = connection.and_then(|connection| connection.session.as_ref());
        let old = session.filter(|session| session.transport == Transport::EventStream);
        Some(old.map(|session| session.id))
    }

    /// Returns what to send next on an exchange, or `None` if there is nothing now or the exchange
    /// has ended.
    ///
    /// The exchange ends after [`ServerTransmit::Respond`], [`ServerTransmit::Finish`] and
    /// [`ServerTransmit::Abort`].
    pub fn poll_transmit(
        &mut self,
        exchange: ExchangeId,
        now: Instant,
    ) -> Option<ServerTransmit<'_>> {
        let key = exchange.0;
        let entry = self.exchanges.get_mut(key)?;
        match entry.state {
            State::Waiting | State::Reading => return None,
            State::Whole(_) => {
                self.exchange_deadlines.clear(key.slot);
                let State::Whole(response) = self.remove_exchange(key)?.state else {
                    return None;
                };
                return Some(ServerTransmit::Respond(response));
            }
            State::Opening => {
                entry.state = if entry.closes { State::Closing } else { State::Streaming };
                (entry.opened_at, entry.sent_at) = (now, now);
                let mut head = ResponseHead::new(Status::OK, Some(Content::EventStream));
                if entry.opens_session {
                    let connection = entry.connection.and_then(|key| self.connections.get(key));
                    head.session = connection.and_then(Connection::session_id);
                }
                self.arm_streaming(key, now);
                return Some(ServerTransmit::Open(head));
            }
            State::Aborted => {
                self.exchange_deadlines.clear(key.slot);
                self.remove_exchange(key);
                return Some(ServerTransmit::Abort);
            }
            State::Streaming | State::Closing => {}
        }
        if self.trim_and_look(key, now) {
            let entry = self.exchanges.get_mut(key)?;
            entry.comment_due = false;
            entry.sent_at = now;
            let stream = self.connections.get_mut(entry.connection?)?;
            let stream = stream.streams.get_mut(entry.stream)?;
            let most = self.options.limits.chunk_bytes_max.max(1);
            return Some(ServerTransmit::Chunk(stream.take(most)));
        }
        if self.is_complete(key) {
            self.finish_exchange(key, now);
            return Some(ServerTransmit::Finish);
        }
        let entry = self.exchanges.get_mut(key)?;
        core::mem::take(&mut entry.comment_due).then_some(ServerTransmit::Chunk(COMMENT))
    }

    /// Drops the events that the reader has taken and that need not be kept. Returns whether there
    /// is more for it.
    fn trim_and_look(&mut self, key: Key, now: Instant) -> bool {
        let limits = &self.options.limits;
        let Some(&Exchange { connection: Some(connection), stream: number, .. }) =
            self.exchanges.get(key)
        else {
            return false;
        };
        let Some(Connection { caller, streams, .. }) = self.connections.get_mut(connection) else {
            return false;
        };
        let caller = *caller;
        let Some(stream) = streams.get_mut(number) else { return false };
        let before = stream.log.len();
        let keeps = stream.resumable
            && self.logged_bytes <= limits.replay_bytes_total_max
            && self.callers.logged(caller) <= limits.replay_bytes_per_caller_max;
        match keeps {
            true => stream.trim(limits.replay_events_max, limits.replay_bytes_max),
            false => stream.trim(0, 0),
        }
        let (after, replays) = (stream.log.len(), stream.replay.is_some());
        let ready = stream.ready() > 0;
        self.log_changed_of(caller, before, after);
        if replays { self.look_at_replay(connection, number, now) } else { ready }
    }

    /// Returns whether nothing more will be sent on an exchange.
    fn is_complete(&self, key: Key) -> bool {
        let Some(entry) = self.exchanges.get(key) else { return false };
        let stream = entry.connection.and_then(|connection| self.stream(connection, entry.stream));
        // A reader that waits for stored events is not at the end, even if the stream is done.
        stream.is_none_or(|stream| {
            let closes = matches!(entry.state, State::Closing);
            stream.replay.is_none() && (closes || stream.done && stream.unread() == 0)
        })
    }

    /// Handles the end of an exchange.
    fn finish_exchange(&mut self, key: Key, now: Instant) {
        self.exchange_deadlines.clear(key.slot);
        let Some(Exchange { connection: Some(connection), stream, .. }) = self.remove_exchange(key)
        else {
            return;
        };
        if self.stream(connection, stream).is_none() {
            return;
        }
        self.detach(connection, stream);
        self.detached(connection, stream, now);
    }

    /// Returns whether the next action of an exchange is [`ServerTransmit::Abort`]. For adapters
    /// whose HTTP library does not poll the body while the client is not reading: they abort the
    /// connection and call [`handle_disconnect`](Self::handle_disconnect).
    #[must_use]
    pub fn is_aborted(&self, exchange: ExchangeId) -> bool {
        self.exchanges.get(exchange.0).is_some_and(|entry| matches!(entry.state, State::Aborted))
    }

    /// Reports that the client has disconnected, so that the response of an exchange cannot be
    /// sent.
    pub fn handle_disconnect(&mut self, exchange: ExchangeId, now: Instant) {
        self.finish_exchange(exchange.0, now);
    }

    /// Handles a stream that has lost its reader.
    pub(super) fn detached(&mut self, key: Key, number: u32, now: Instant) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.session.is_none() {
            // MCP 2026-07-28 basic/transports/streamable-http#cancellation [CANC-015] [CANC-017]
            connection.machine.handle_channel_closed(Channel(number), now);
            self.drop_stream(key, number);
            self.pump(key, now);
        } else if connection.is_event_stream() {
            // This stream was the only connection to the client.
            self.leave_session(key, now);
            self.end_session(key, now);
        } else {
            // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-011] [CANC-012]:
            // not a cancellation.
            self.leave_session(key, now);
            match self.stream(key, number) {
                Some(stream) if stream.is_foreign() => self.drop_stream(key, number),
                Some(stream) if stream.done => self.keep_finished(key, number, now),
                _ => self.hold_unread(key, number),
            }
        }
    }

    /// Ends the response of an exchange whose stream has another reader or was removed. Sends
    /// `instead` if nothing was sent yet.
    pub(super) fn end_exchange(&mut self, key: Key, instead: Option<Response>, now: Instant) {
        let Some(entry) = self.exchanges.get_mut(key) else { return };
        self.exchange_deadlines.clear(key.slot);
        entry.state = match (&entry.state, instead) {
            (State::Waiting | State::Reading | State::Opening, Some(response)) => {
                State::Whole(response)
            }
            (State::Waiting | State::Reading | State::Opening, None) => State::Opening,
            _ => State::Closing,
        };
        if let Some(connection) = entry.connection.take() {
            self.leave_session(connection, now);
        }
        self.make_ready(key);
    }

    /// Aborts the connection of a reader that is too slow. The stream is kept if it can be resumed.
    pub(super) fn cut_off(&mut self, key: Key, now: Instant) {
        let Some(entry) = self.exchanges.get_mut(key) else { return };
        entry.state = State::Aborted;
        self.exchange_deadlines.clear(key.slot);
        let (connection, number) = (entry.connection.take(), entry.stream);
        self.make_ready(key);
        let Some(connection) = connection else { return };
        if self.stream(connection, number).is_some() {
            self.detach(connection, number);
            self.detached(connection, number, now);
        }
    }

    /// Closes the connection of a stream that can be resumed, and sends the reconnection delay.
    pub(super) fn close_reader(&mut self, key: Key, number: u32, retry: Duration) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if !connection.polls() {
            return;
        }
        let Some(stream) = connection.streams.get_mut(number) else { return };
        if stream.is_foreign() {
            return self.leave_foreign(key, number);
        }
        let Some(reader) = stream.reader.filter(|_| stream.resumable && !stream.done) else {
            return;
        };
        let Some(entry) = self.exchanges.get_mut(reader) else { return };
        match entry.state {
            State::Waiting | State::Opening if !entry.closes => {
                entry.state = State::Opening;
                entry.closes = true;
            }
            State::Reading if !entry.closes => entry.closes = true,
            State::Streaming => entry.state = State::Closing,
            _ => return,
        }
        let before = stream.log.len();
        stream.open();
        stream.push_retry(retry);
        let after = stream.log.len();
        self.log_changed(key, before, after);
        self.record_ids(key, number);
        self.rest(reader);
        self.make_ready(reader);
    }

    /// Ends the streams of a connection that are open for future messages.
    pub(super) fn close_open_streams(&mut self, key: Key) {
        let Some(Connection { machine, session, streams, .. }) = self.connections.get_mut(key)
        else {
            return;
        };
        if session.is_none() {
            return machine.finish_listening();
        }
        let reader = streams.get_mut(STANDALONE).and_then(|stream| stream.reader);
        let followed = streams.iter().filter(|it| it.is_foreign() && is_standalone(it.number));
        let followed: Vec<u32> = followed.map(|stream| stream.number).collect();
        if let Some(reader) = reader {
            self.close_after_the_rest(reader);
        }
        for number in followed {
            self.leave_foreign(key, number);
        }
    }

    /// Closes the connection of a stream as soon as the available events are sent.
    pub(super) fn close_after_the_rest(&mut self, reader: Key) {
        let Some(entry) = self.exchanges.get_mut(reader) else { return };
        match entry.state {
            State::Waiting | State::Reading | State::Opening => entry.closes = true,
            _ => entry.state = State::Closing,
        }
        self.rest(reader);
        self.make_ready(reader);
    }

    /// Keeps only the deadlines of the pending read and of the authorization for an exchange.
    pub(super) fn rest(&mut self, key: Key) {
        let expires = self.exchanges.get(key).and_then(|exchange| exchange.expires);
        match [self.read_due(key), expires].into_iter().flatten().min() {
            Some(due) => self.exchange_deadlines.set(key.slot, due),
            None => self.exchange_deadlines.clear(key.slot),
        }
    }

    pub(super) fn make_ready(&mut self, key: Key) {
        if let Some(entry) = self.exchanges.get_mut(key)
            && !core::mem::replace(&mut entry.queued, true)
        {
            self.ready.push_back(ExchangeId(key));
        }
    }
}
