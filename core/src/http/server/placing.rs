//! Which stream carries which message, and in which form.

use crate::Instant;
use crate::http::{Content, Response, ResponseHead, Status};
use crate::peer::outbox::{Channel, Part, Verdict};
use crate::peer::slab::Key;
use crate::protocol::{Era, Revision};

use super::answers::status_of;
use super::exchange::State;
use super::options::Answers;
use super::session::STANDALONE;
use super::{Connection, SPARE_MAX, Server};

impl Server {
    /// Moves what a connection's machine wants to send to the streams that it belongs to.
    // MCP 2025-11-25 basic/transports#multiple-connections [HSRV-017]: each message on one stream.
    pub(super) fn place(&mut self, key: Key, now: Instant) {
        loop {
            let Some(connection) = self.connections.get_mut(key) else { return };
            let Some((post, _)) = connection.machine.next_post() else { break };
            let number = connection.number_of(post.channel);
            match post.part {
                Part::Message => self.place_message(key, number, now),
                Part::Answer(verdict) => self.place_answer(key, number, verdict, now),
                Part::Withdrawn => {
                    connection.machine.skip_post();
                    self.withdraw(key, number, now);
                }
                Part::Abort(_) => connection.machine.skip_post(),
            }
        }
        self.retire_connection(key);
    }

    /// A message before the answer, or one that belongs to no request.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-014] [HSRV-015] [HSRV-018]
    // MCP 2026-07-28 basic/transports/streamable-http#receiving-messages [HSRV-019] [SSE-015]
    fn place_message(&mut self, key: Key, number: u32, now: Instant) {
        let Some(Connection { machine, streams, .. }) = self.connections.get_mut(key) else {
            return;
        };
        let at = streams.binary_search_by_key(&number, |stream| stream.number);
        if let (Ok(at), Some((_, message))) = (at, machine.next_post()) {
            let stream = &mut streams[at];
            let before = stream.log.len();
            if stream.reader.is_some() || number != STANDALONE {
                stream.open();
            }
            stream.push(message);
            self.logged += stream.log.len() - before;
            machine.skip_post();
            self.announce_stream(key, number, now);
        } else {
            machine.skip_post();
        }
    }

    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-012] [SSE-001] [SSE-004]
    fn place_answer(&mut self, key: Key, number: u32, verdict: Verdict, now: Instant) {
        let always_stream = self.options.answers == Answers::Stream;
        let Some(connection) = self.connections.get_mut(key) else { return };
        let era = connection.era();
        if connection.is_event_stream() {
            return self.place_message(key, number, now);
        }
        let Ok(at) = connection.streams.binary_search_by_key(&number, |stream| stream.number)
        else {
            return connection.machine.skip_post();
        };
        let stream = &connection.streams[at];
        let reader = stream.reader;
        let plain = !stream.opened
            && (!always_stream || verdict != Verdict::Result || connection.session.is_none());
        if let (true, Some(reader)) = (plain, reader) {
            let body = connection.machine.take_post();
            connection.streams.remove(at);
            self.leave_session(key);
            if let Some(exchange) = self.exchanges.get_mut(reader) {
                let mut head = ResponseHead::new(status_of(verdict, era), Some(Content::Json));
                // MCP 2025-11-25 basic/transports#session-management [SESS-001]
                head.session = exchange.session.filter(|_| verdict == Verdict::Result);
                exchange.connection = None;
                exchange.state = State::Whole(Response { head, body });
                self.exchange_deadlines.clear(reader.slot);
                self.make_ready(reader);
            }
        } else if reader.is_none() && !stream.can_resume() {
            // The client has gone, and there is no way for it to ask again.
            connection.machine.skip_post();
            self.drop_stream(key, number);
        } else {
            self.place_message(key, number, now);
            self.finish_stream(key, number, now);
        }
    }

    /// A request that gets no answer: what carries it ends.
    fn withdraw(&mut self, key: Key, number: u32, now: Instant) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.is_event_stream() || number == STANDALONE && connection.session.is_some() {
            return;
        }
        let Some(stream) = connection.stream(number) else { return };
        match stream.reader {
            None if !stream.can_resume() => self.drop_stream(key, number),
            Some(reader) if !stream.opened => {
                self.drop_stream(key, number);
                if let Some(exchange) = self.exchanges.get_mut(reader) {
                    exchange.connection = None;
                    let head = ResponseHead::new(Status::ACCEPTED, None);
                    exchange.state = State::Whole(Response { head, body: alloc::vec::Vec::new() });
                    self.exchange_deadlines.clear(reader.slot);
                    self.make_ready(reader);
                }
            }
            _ => self.finish_stream(key, number, now),
        }
    }

    /// There is something new on a stream: its reader is told, or the bounds are enforced.
    fn announce_stream(&mut self, key: Key, number: u32, now: Instant) {
        let unread_max = self.options.limits.unread_bytes_max as u64;
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(stream) = connection.stream(number) else { return };
        let late = stream.unread() > unread_max;
        match stream.reader {
            Some(reader) if late => self.cut_off(reader, now),
            Some(reader) => {
                if let Some(exchange) = self.exchanges.get_mut(reader) {
                    if matches!(exchange.state, State::Waiting) {
                        exchange.state = State::Opening;
                        self.arm_streaming(reader, now);
                    }
                    self.make_ready(reader);
                }
            }
            None => {}
        }
        let limits = &self.options.limits;
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(stream) = connection.stream(number) else { return };
        if stream.reader.is_some() {
            return;
        }
        // Nobody reads: the oldest go, and whoever comes back for them is told.
        let before = stream.log.len();
        let bytes_max = limits.replay_bytes_max;
        let events_max = limits.replay_events_max;
        stream.log.keep(events_max, bytes_max);
        stream.taken = stream.taken.max(stream.log.start());
        self.logged -= before - stream.log.len();
    }

    /// Nothing more will come on a stream.
    pub(super) fn finish_stream(&mut self, key: Key, number: u32, now: Instant) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(stream) = connection.stream(number) else { return };
        stream.done = true;
        match stream.reader {
            Some(reader) => {
                if let Some(exchange) = self.exchanges.get_mut(reader) {
                    if matches!(exchange.state, State::Waiting) {
                        exchange.state = State::Opening;
                    }
                    self.make_ready(reader);
                }
            }
            None => self.keep_finished(key, number, now),
        }
    }

    /// A stream without a reader that is done: it is kept for a while, if a client could ask for it.
    pub(super) fn keep_finished(&mut self, key: Key, number: u32, now: Instant) {
        let until = now + self.options.timeouts.replay;
        let finished_max = self.options.limits.finished_streams_max;
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(stream) = connection.stream(number) else { return };
        if !stream.can_resume() {
            return self.drop_stream(key, number);
        }
        if stream.kept_until.replace(until).is_none() {
            self.finished.push_back(super::Finished { until, connection: key, stream: number });
            let mut surplus = None;
            if let Some(session) = &mut connection.session {
                session.finished += 1;
                if session.finished > finished_max {
                    let oldest =
                        connection.streams.iter().find(|stream| stream.kept_until.is_some());
                    surplus = oldest.map(|stream| stream.number);
                }
            }
            if let Some(oldest) = surplus {
                self.drop_stream(key, oldest);
            }
        }
        while self.logged > self.options.limits.replay_bytes_total_max
            && let Some(oldest) = self.finished.pop_front()
        {
            self.give_up(oldest, None);
        }
    }

    /// Drops finished streams whose time has come.
    pub(super) fn give_up_finished(&mut self, now: Instant) {
        while let Some(oldest) = self.finished.front().copied()
            && oldest.until <= now
        {
            self.finished.pop_front();
            self.give_up(oldest, Some(now));
        }
    }

    fn give_up(&mut self, finished: super::Finished, now: Option<Instant>) {
        let super::Finished { connection: key, stream: number, .. } = finished;
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(stream) = connection.stream(number) else { return };
        let Some(until) = stream.kept_until else { return };
        if let Some(now) = now
            && (stream.reader.is_some() || until > now)
        {
            // Somebody came back for it meanwhile.
            let until = until.max(now + self.options.timeouts.replay);
            stream.kept_until = Some(until);
            self.finished.push_back(super::Finished { until, ..finished });
        } else if stream.reader.is_none() {
            self.drop_stream(key, number);
        }
    }

    pub(super) fn drop_stream(&mut self, key: Key, number: u32) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Ok(at) = connection.streams.binary_search_by_key(&number, |stream| stream.number)
        else {
            return;
        };
        let stream = connection.streams.remove(at);
        self.logged -= stream.log.len();
        if let Some(session) = &mut connection.session {
            session.finished -= usize::from(stream.kept_until.is_some());
            session.open -= usize::from(stream.reader.is_some());
        }
    }

    /// An exchange of a session is over.
    pub(super) fn leave_session(&mut self, key: Key) {
        if let Some(session) = self.connections.get_mut(key).and_then(|c| c.session.as_mut()) {
            session.open -= 1;
        }
    }

    /// A modern connection whose request is answered and sent is over.
    pub(super) fn retire_connection(&mut self, key: Key) {
        let over = self.connections.get(key).is_some_and(|connection| {
            connection.session.is_none() && connection.streams.is_empty()
        });
        if !over {
            return;
        }
        self.connection_deadlines.clear(key.slot);
        if let Some(connection) = self.connections.get_mut(key) {
            while let Some(event) = connection.machine.poll_event() {
                self.events.push_back(super::stamped(event, key));
            }
        }
        if let Some(connection) = self.connections.remove(key)
            && connection.machine.is_fresh()
            && self.spare.len() < SPARE_MAX
        {
            self.spare.push(connection.machine);
        }
    }
}

impl Connection {
    fn number_of(&self, channel: Channel) -> u32 {
        if channel == Channel::UNSOLICITED || self.is_event_stream() {
            STANDALONE
        } else {
            channel.0
        }
    }

    /// Whether all messages travel on one stream.
    pub(super) fn is_event_stream(&self) -> bool {
        use super::session::Transport::EventStream;
        self.session.as_ref().is_some_and(|session| session.transport == EventStream)
    }

    pub(super) const fn era(&self) -> Era {
        if self.session.is_some() { Era::Legacy } else { Era::Modern }
    }

    pub(super) fn polls(&self) -> bool {
        self.machine.session_revision().is_some_and(|revision| revision >= Revision::V2025_11_25)
    }
}
