//! Legacy sessions: how they begin, are found, and end.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::Instant;
use crate::http::{
    Content, ExchangeId, Principal, RequestHead, Response, ResponseHead, SessionId, Status,
};
use crate::jsonrpc::{ErrorObject, RequestId, parse, write_error};
use crate::peer;
use crate::peer::slab::Key;
use crate::protocol::Revision;

use super::admission::{busy, refusal};
use super::exchange::{Exchange, State};
use super::log::{EventId, Resume};
use super::posts::check_legacy_version;
use super::session::{STANDALONE, Session, Transport};
use super::stream::Stream;
use super::{Connection, Server};

impl Server {
    /// A machine for a new connection.
    pub(super) fn fresh_machine(&mut self) -> Box<peer::Server> {
        match self.spare.pop() {
            Some(mut machine) => {
                machine.adopt(&self.blueprint);
                machine
            }
            None => Box::new(peer::Server::posting(&self.blueprint, self.seed)),
        }
    }

    pub(super) fn new_session(
        &mut self,
        transport: Transport,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Key, Response> {
        if self.sessions.len() >= self.options.limits.sessions_max {
            return Err(busy("the server has too many sessions"));
        }
        let id = self.session_ids.draw();
        let machine = self.fresh_machine();
        let session = Session {
            id,
            transport,
            next_stream: STANDALONE + 1,
            open: 0,
            finished: 0,
            last_used: now,
            confirmed: false,
        };
        let principal = principal.cloned();
        let streams = [Stream::new(STANDALONE)].into();
        let session = Some(session);
        let key = self.connections.insert(Connection { machine, principal, session, streams });
        self.sessions.insert(id, key);
        self.arm_connection(key, now);
        Ok(key)
    }

    /// The session is open, at a revision that is known now: its unasked messages get ids.
    pub(super) fn prime_standalone(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let revision = connection.machine.session_revision();
        if let Some(stream) = connection.stream(STANDALONE) {
            stream.resumable = revision.is_some_and(|revision| revision >= Revision::V2025_03_26);
            stream.primes = revision.is_some_and(|revision| revision >= Revision::V2025_11_25);
        }
    }

    /// The session that a request names.
    // MCP 2025-11-25 basic/transports#session-management [SESS-006] [SESS-008]
    // MCP 2025-11-25 security-best-practices#session-hijacking [SESS-014]: to anybody else it does
    // not exist.
    pub(super) fn find_session(
        &self,
        head: &RequestHead<'_>,
        principal: Option<&Principal>,
        request: Option<&RequestId>,
    ) -> Result<Key, Response> {
        let refuse = |status, message: &str| {
            let mut body = Vec::new();
            write_error(&mut body, request, &ErrorObject::invalid_request(message));
            Response { head: ResponseHead::new(status, Some(Content::Json)), body }
        };
        let Some(id) = head.session_id else {
            let message = "`Mcp-Session-Id` is missing: send `initialize` first";
            return Err(refuse(Status::BAD_REQUEST, message));
        };
        let gone = || refuse(Status::NOT_FOUND, "there is no such session: send `initialize`");
        SessionId::parse(id)
            .and_then(|id| self.session_of(id, principal, Transport::Streamable))
            .ok_or_else(gone)
    }

    fn session_of(
        &self,
        id: SessionId,
        principal: Option<&Principal>,
        transport: Transport,
    ) -> Option<Key> {
        let key = *self.sessions.get(&id)?;
        let connection = self.connections.get(key)?;
        let same = connection.session.as_ref().is_some_and(|s| s.transport == transport);
        (same && connection.principal.as_ref() == principal).then_some(key)
    }

    /// Opens or takes up again a stream of a session.
    // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HSRV-013]
    pub(super) fn get(
        &mut self,
        head: &RequestHead<'_>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<ExchangeId, Response> {
        check_legacy_version(head)?;
        let key = self.find_session(head, principal, None)?;
        let Some(connection) = self.connections.get_mut(key) else {
            return Err(refusal(Status::NOT_FOUND, "there is no such session"));
        };
        let place = match head.last_event_id {
            None => None,
            Some(text) => Some(resume(connection, text)?),
        };
        let number = place.map_or(STANDALONE, |(number, _)| number);
        let Some(stream) = connection.stream(number) else {
            return Err(refusal(Status::GONE, GONE));
        };
        // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-006]
        if let Some((_, place)) = place {
            stream.taken = place;
        }
        let before = stream.reader.take();
        let (already_open, length) = (stream.opened, stream.log.len());
        stream.open();
        if place.is_none() && already_open && stream.primes {
            // A new reader, who has no id yet to come back with.
            stream.log.push_priming(number, None);
        }
        self.logged += stream.log.len() - length;
        // One that was there has lost its connection without our knowing; the new one takes over.
        // MCP 2025-11-25 basic/transports#multiple-connections [HSRV-017]
        if let Some(before) = before {
            self.end_exchange(before);
        }
        let exchange = self.exchanges.insert(Exchange::new(Some(key), number, State::Opening));
        if let Some(connection) = self.connections.get_mut(key) {
            if let Some(stream) = connection.stream(number) {
                stream.reader = Some(exchange);
            }
            if let Some(session) = &mut connection.session {
                session.open += 1;
                session.last_used = now;
            }
        }
        self.make_ready(exchange);
        self.arm_streaming(exchange, now);
        Ok(ExchangeId(exchange))
    }

    /// Ends a session at its client's wish.
    // MCP 2025-11-25 basic/transports#session-management [SESS-010]
    pub(super) fn delete(
        &mut self,
        head: &RequestHead<'_>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<ExchangeId, Response> {
        check_legacy_version(head)?;
        let key = self.find_session(head, principal, None)?;
        self.end_session(key, now);
        let head = ResponseHead::new(Status::NO_CONTENT, None);
        Ok(self.respond_whole(Response { head, body: Vec::new() }))
    }

    /// Ends a session: its requests are cancelled, its streams end.
    // MCP 2025-11-25 basic/transports#session-management [SESS-007] [SSE-003]
    pub(super) fn end_session(&mut self, key: Key, now: Instant) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.machine.abandon(now);
        while let Some(event) = connection.machine.poll_event() {
            if !matches!(event, peer::Event::Closed(_)) {
                self.events.push_back(super::stamped(event, key));
            }
        }
        let readers: Vec<Key> =
            connection.streams.iter().filter_map(|stream| stream.reader).collect();
        self.forget_session(key);
        for reader in readers {
            self.end_exchange(reader);
        }
    }

    /// Forgets a session without a word. Responses of it that are complete still leave.
    pub(super) fn forget_session(&mut self, key: Key) {
        let Some(connection) = self.connections.remove(key) else { return };
        self.connection_deadlines.clear(key.slot);
        if let Some(session) = connection.session {
            self.sessions.remove(&session.id);
        }
        self.logged -= connection.streams.iter().map(|stream| stream.log.len()).sum::<usize>();
    }

    // ------------------------------------------------------------------ HTTP+SSE

    /// Opens the stream of events of a client of 2024-11-05, which is a session.
    // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-001] [LSSE-002]
    pub(super) fn open_event_stream(
        &mut self,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<ExchangeId, Response> {
        let path = self.options.message_path.clone().unwrap_or_default();
        let key = self.new_session(Transport::EventStream, principal, now)?;
        let exchange = self.exchanges.insert(Exchange::new(Some(key), STANDALONE, State::Opening));
        if let Some(connection) = self.connections.get_mut(key) {
            let id = connection.session.as_ref().map(|session| session.id);
            if let Some(session) = &mut connection.session {
                session.open += 1;
            }
            if let (Some(stream), Some(id)) = (connection.stream(STANDALONE), id) {
                let endpoint = alloc::format!("{path}?sessionId={}", id.as_str());
                stream.log.push(Some("endpoint"), None, endpoint.as_bytes());
                stream.reader = Some(exchange);
                stream.opened = true;
                stream.kind = Some("message");
                self.logged += stream.log.len();
            }
        }
        self.make_ready(exchange);
        self.arm_streaming(exchange, now);
        Ok(ExchangeId(exchange))
    }

    /// A message of a client of 2024-11-05.
    pub(super) fn message<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<(ExchangeId, Option<peer::Event<'f>>), Response> {
        let id = head.query.split('&').find_map(|pair| pair.strip_prefix("sessionId="));
        let key = id
            .and_then(|id| SessionId::parse(id.as_bytes()))
            .and_then(|id| self.session_of(id, principal, Transport::EventStream))
            .ok_or_else(|| refusal(Status::NOT_FOUND, "there is no such session"))?;
        let frame = parse(body, self.blueprint.parse_limits());
        Ok(self.deliver(key, frame, now))
    }
}

const GONE: &str = "what came after this event is not kept any more";

/// The stream that an event belongs to, and the place after it.
// MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-007]
fn resume(connection: &mut Connection, text: &[u8]) -> Result<(u32, u64), Response> {
    let never = || refusal(Status::BAD_REQUEST, "`Last-Event-ID` names no event of this session");
    let id = EventId::parse(text).ok_or_else(never)?;
    let next_stream = connection.session.as_ref().map_or(0, |session| session.next_stream);
    let Some(stream) = connection.stream(id.stream) else {
        let was = id.stream < next_stream;
        return Err(if was { refusal(Status::GONE, GONE) } else { never() });
    };
    match stream.log.after(id.sequence) {
        Resume::At(place) => Ok((id.stream, place)),
        Resume::Dropped => Err(refusal(Status::GONE, GONE)),
        Resume::Unknown => Err(never()),
    }
}
