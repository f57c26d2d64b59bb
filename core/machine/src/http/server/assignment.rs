//! Assigns messages to streams, and chooses the form of responses.

use alloc::vec::Vec;

use mcp_sansio_collections::Key;

use crate::http::{Content, Response, ResponseHead, SessionId, Status};
use crate::peer::outbox::{Channel, Part, SentNotification, Verdict};
use crate::peer::queue::Tag;
use crate::protocol::{Era, Revision};
use crate::{Caller, Instant};

use super::answers::status_of;
use super::exchange::State;
use super::options::ResponseMode;
use super::sessions::STANDALONE;
use super::stream::Stream;
use super::{Connection, POOLED_MACHINES_MAX, Server};

impl Server {
    pub(super) fn stream(&self, key: Key, number: u32) -> Option<&Stream> {
        self.connections.get(key)?.streams.get(number)
    }

    pub(super) fn stream_mut(&mut self, key: Key, number: u32) -> Option<&mut Stream> {
        self.connections.get_mut(key)?.streams.get_mut(number)
    }

    /// Moves the messages of a connection's machine to their streams.
    // MCP 2025-11-25 basic/transports#multiple-connections [HSRV-017]: each message is on one
    // stream.
    pub(super) fn assign_messages(&mut self, key: Key, now: Instant) {
        // Few: a request asks its client a bounded number of questions at once.
        let mut withdrawn: Vec<i64> = Vec::new();
        let mut ended = Vec::new();
        loop {
            let Some(connection) = self.connections.get_mut(key) else { return };
            let Some((message, _)) = connection.machine.next_message() else { break };
            let number = connection.number_of(message.channel);
            match message.part {
                // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-001]: a
                // request that was withdrawn before the client received it must not be cancelled.
                Part::Notification(SentNotification { cancelled: Some(id), .. })
                    if withdrawn.contains(&id) =>
                {
                    connection.machine.skip_message();
                }
                Part::Request(_) | Part::Notification(_) | Part::Answers => {
                    self.assign_message(key, number, false, now);
                }
                Part::Answer(verdict) => {
                    self.assign_answer(key, number, (verdict, message.tag), now)
                }
                Part::Withdrawn => {
                    connection.machine.skip_message();
                    withdrawn = self.withdraw(key, number, &mut ended);
                }
                Part::Recalled(tag) => {
                    connection.machine.skip_message();
                    self.recall(key, tag);
                }
                Part::Abort(_) => connection.machine.skip_message(),
            }
        }
        // After the cancellations of requests to the client, which belong to the same streams.
        for number in ended {
            self.record_end(key, number);
            self.finish_stream(key, number, now);
        }
        self.retire_connection(key);
    }

    /// Adds a message that precedes the response, or belongs to no request, to a stream, or the
    /// `last` one of the stream. Responses have their own streams, except with HTTP+SSE.
    // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HSRV-016]
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-014] [HSRV-015] [HSRV-018]
    // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [HSRV-019] [SSE-015]
    fn assign_message(&mut self, key: Key, number: u32, last: bool, now: Instant) {
        if self.shared.is_some() && self.is_unheard(key, number) {
            // Another node has the reader, and the same messages.
            if let Some(connection) = self.connections.get_mut(key) {
                connection.machine.skip_message();
            }
            return;
        }
        let unread_max = self.options.limits.unread_bytes_max as u64;
        let Some(Connection { machine, session, streams, caller }) = self.connections.get_mut(key)
        else {
            return;
        };
        let caller = *caller;
        if let (Some(stream), Some((sent, message))) =
            (streams.get_mut(number), machine.next_message())
        {
            let request = match sent.part {
                Part::Request(request) => Some(request.id),
                _ => None,
            };
            // Only earlier messages count, so that no single message is too long to be sent.
            let late = stream.unread() > unread_max;
            let reader = stream.reader;
            let before = stream.log.len();
            stream.open();
            stream.push(message.as_bytes(), request);
            stream.done |= last;
            let after = stream.log.len();
            if let Some(session) = session {
                self.store.record(session, machine, stream, message.as_bytes());
            }
            machine.skip_message();
            self.log_changed_of(caller, before, after);
            if self.shared.is_some() {
                self.notify_followers(key, number);
            }
            match reader {
                Some(reader) if !late => self.announce_to(reader),
                _ => {
                    if let Some(reader) = reader {
                        self.cut_off(reader, now);
                    }
                    self.hold_unread(key, number);
                }
            }
            self.hold_total(key, number, now);
        } else {
            machine.skip_message();
        }
    }

    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-012] [SSE-001] [SSE-004]
    fn assign_answer(
        &mut self,
        key: Key,
        number: u32,
        (verdict, tag): (Verdict, Tag),
        now: Instant,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.is_event_stream() {
            return self.assign_message(key, number, false, now);
        }
        if let Some(session) = &mut connection.session {
            session.last_used = now;
        }
        let Some(stream) = connection.streams.get(number) else {
            return connection.machine.skip_message();
        };
        let plain =
            !stream.opened && (stream.mode != ResponseMode::Stream || verdict != Verdict::Result);
        match stream.reader {
            Some(reader) if plain => {
                let status = status_of(verdict, connection.era());
                let failed = matches!(verdict, Verdict::Failed(_));
                let body = connection.machine.take_message().into_bytes();
                let session = connection.session_id();
                self.drop_stream(key, number);
                let refusal = self.exchanges.get_mut(reader).and_then(|it| it.refusal.take());
                let mut head = match refusal {
                    Some(refusal) if failed => *refusal,
                    _ => ResponseHead::new(status, Some(Content::Json)),
                };
                // MCP 2025-11-25 basic/transports#session-management [SESS-001]
                let opens = self.exchanges.get(reader).is_some_and(|it| it.opens_session);
                head.session = session.filter(|_| opens && verdict == Verdict::Result);
                self.complete(reader, Response { head, body });
            }
            None if !stream.can_resume() => {
                // The client has gone, and cannot resume the stream.
                connection.machine.skip_message();
                self.drop_stream(key, number);
            }
            _ => {
                self.assign_message(key, number, true, now);
                self.note_answer(key, number, tag);
                self.finish_stream(key, number, now);
            }
        }
    }

    /// Records that the last message of a stream is the response to a request of a session, which
    /// its client may still cancel with a message.
    fn note_answer(&mut self, key: Key, number: u32, tag: Tag) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if let Some(stream) = connection.streams.get_mut(number)
            && connection.session.is_some()
            && tag != Tag::NONE
        {
            stream.answers = tag;
            self.answered.insert((key.to_number(), tag), number);
        }
    }

    /// Handles the cancellation of a request whose response is on its stream: events not yet sent
    /// are dropped.
    // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-003]
    fn recall(&mut self, key: Key, tag: Tag) {
        let Some(number) = self.answered.remove(&(key.to_number(), tag)) else { return };
        self.withdraw_unread(key, number);
        self.announce_stream(key, number);
    }

    /// Drops the events of a stream that no reader has started to take, and returns the ids of the
    /// requests among them.
    fn withdraw_unread(&mut self, key: Key, number: u32) -> Vec<i64> {
        let Some(stream) = self.stream_mut(key, number) else { return Vec::new() };
        let before = stream.log.len();
        let withdrawn = stream.withdraw_unread();
        let after = stream.log.len();
        self.log_changed(key, before, after);
        withdrawn
    }

    /// Sets the complete response of an exchange, which then no longer belongs to a stream.
    fn complete(&mut self, key: Key, response: Response) {
        self.exchange_deadlines.clear(key.slot);
        if let Some(exchange) = self.exchanges.get_mut(key) {
            exchange.connection = None;
            exchange.state = State::Whole(response);
            self.make_ready(key);
        }
    }

    /// Ends the exchange of a request that gets no response, or adds its stream to those that have
    /// `ended`. Returns the ids of the requests among the dropped events.
    fn withdraw(&mut self, key: Key, number: u32, ended: &mut Vec<u32>) -> Vec<i64> {
        let Some(connection) = self.connections.get_mut(key) else { return Vec::new() };
        if connection.is_event_stream() || number == STANDALONE && connection.session.is_some() {
            return Vec::new();
        }
        // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-003]: messages
        // for the request that were not sent yet are dropped.
        let withdrawn = self.withdraw_unread(key, number);
        let Some(stream) = self.stream(key, number) else { return withdrawn };
        match stream.reader {
            None if !stream.can_resume() => self.drop_stream(key, number),
            Some(reader) if !stream.opened => {
                self.drop_stream(key, number);
                let Some(exchange) = self.exchanges.get_mut(reader) else { return withdrawn };
                if exchange.asks {
                    // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-003],
                    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-012]: a
                    // request gets JSON or a stream; without a response it gets an empty stream.
                    exchange.connection = None;
                    exchange.state = State::Opening;
                    self.exchange_deadlines.clear(reader.slot);
                    self.make_ready(reader);
                } else {
                    // MCP 2025-03-26 basic/transports#sending-messages-to-the-server [BATCH-006]
                    let head = ResponseHead::new(Status::ACCEPTED, None);
                    self.complete(reader, Response { head, body: Vec::new() });
                }
            }
            _ => ended.push(number),
        }
        withdrawn
    }

    /// Notifies the reader of a stream that there is something to send.
    fn announce_stream(&mut self, key: Key, number: u32) {
        if let Some(reader) = self.stream(key, number).and_then(|stream| stream.reader) {
            self.announce_to(reader);
        }
    }

    /// Marks a reader as ready, and starts its response if it has not started yet.
    fn announce_to(&mut self, reader: Key) {
        let Some(exchange) = self.exchanges.get_mut(reader) else { return };
        if matches!(exchange.state, State::Waiting) {
            exchange.state = State::Opening;
            self.rest(reader);
        }
        self.make_ready(reader);
    }

    /// Ends a stream: no more messages will be added.
    // MCP 2025-03-26 basic/transports#sending-messages-to-the-server [SSE-002] [BATCH-008]
    // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [HSRV-028]
    fn finish_stream(&mut self, key: Key, number: u32, now: Instant) {
        let Some(stream) = self.stream_mut(key, number) else { return };
        stream.done = true;
        if stream.reader.is_some() {
            self.announce_stream(key, number);
        } else {
            self.keep_finished(key, number, now);
        }
    }

    /// Handles the end of a session's exchange.
    pub(super) fn leave_session(&mut self, key: Key, now: Instant) {
        if let Some(session) = self.connections.get_mut(key).and_then(|c| c.session.as_mut()) {
            session.open -= 1;
            session.last_used = now;
        }
    }

    /// Removes a modern connection whose response was sent.
    fn retire_connection(&mut self, key: Key) {
        let over = self.connections.get(key).is_some_and(|connection| {
            connection.session.is_none() && connection.streams.is_empty()
        });
        if !over {
            return;
        }
        self.connection_deadlines.clear(key.slot);
        self.collect_events(key);
        if let Some(mut connection) = self.connections.remove(key)
            && connection.machine.is_fresh()
            && self.machine_pool.len() < POOLED_MACHINES_MAX
        {
            // What a layer has attached to the request ends with it.
            connection.machine.set_caller(&Caller::ANONYMOUS);
            self.machine_pool.push(connection.machine);
        }
    }
}

impl Connection {
    pub(super) fn number_of(&self, channel: Channel) -> u32 {
        if channel == Channel::UNSOLICITED || self.is_event_stream() {
            STANDALONE
        } else {
            channel.0
        }
    }

    /// Returns the session id, if the connection is a session.
    pub(super) fn session_id(&self) -> Option<SessionId> {
        self.session.as_ref().map(|session| session.id)
    }

    /// Returns whether all messages are sent on one event stream.
    pub(super) fn is_event_stream(&self) -> bool {
        use super::sessions::Transport::EventStream;
        self.session.as_ref().is_some_and(|session| session.transport == EventStream)
    }

    const fn era(&self) -> Era {
        if self.session.is_some() { Era::Legacy } else { Era::Modern }
    }

    /// Returns whether the server may close a connection and let the client resume the stream.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [SSE-005] [SSE-006]
    pub(super) fn polls(&self) -> bool {
        let revision = self.machine.session_revision();
        revision.is_some_and(|revision| revision >= Revision::V2025_11_25)
            && !self.is_event_stream()
    }

    /// Returns whether events have ids, so that the client can resume a stream.
    // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-001]
    pub(super) fn resumes(&self) -> bool {
        let revision = self.machine.session_revision();
        revision.is_some_and(|revision| revision >= Revision::V2025_03_26)
            && !self.is_event_stream()
    }
}
