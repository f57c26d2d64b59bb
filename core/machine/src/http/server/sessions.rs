//! Legacy sessions: opening, finding and ending them.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use mcp_sansio_collections::Key;

use crate::binding::Binding;
use crate::catalog::Announcement;
use crate::http::{ExchangeId, RequestHead, Response, ResponseHead, SessionId, Status};
use crate::jsonrpc::RequestId;
use crate::peer;
use crate::peer::queue::Tag;
use crate::{Caller, Instant, Principal, SessionKey};

use super::callers::{NO_SLOT, Sender};
use super::exchange::{Exchange, State};
use super::log::{EventId, Resume};
use super::posts::named_request;
use super::reader::{Body, refusal};
use super::shared::{FIRST_REPLICA, first_of};
use super::store_queue::Account;
use super::stream::Stream;
use super::streams::Streams;
use super::{Connection, Exhausted, Server, SharedResource};

impl Server {
    /// Returns a machine for a new connection.
    pub(super) fn fresh_machine(&mut self) -> Box<peer::Server> {
        match self.machine_pool.pop() {
            Some(mut machine) => {
                machine.adopt(&self.server_config);
                machine
            }
            None => Box::new(peer::Server::with_binding(
                &self.server_config,
                Binding::ChannelPerRequest,
                self.seed,
            )),
        }
    }

    pub(super) fn new_session(
        &mut self,
        transport: Transport,
        sender: Sender<'_>,
        request: Option<&RequestId>,
        now: Instant,
    ) -> Result<Key, Response> {
        let Sender { identity, caller, .. } = sender;
        self.check_session_limits(caller, request, now)?;
        let id = self.session_ids.draw();
        let base = match (&self.shared, transport) {
            (Some(_), Transport::Streamable) => first_of(FIRST_REPLICA),
            _ => STANDALONE,
        };
        let mut machine = match transport {
            Transport::Streamable => self.fresh_machine(),
            // MCP 2026-07-28 basic/transports/streamable-http#backward-compatibility [LSSE-011]:
            // the transport is older than modern requests, which use only the endpoint.
            Transport::EventStream => {
                let server_config = self.server_config.for_legacy_sessions();
                Box::new(peer::Server::with_binding(
                    &server_config,
                    Binding::ChannelPerRequest,
                    self.seed,
                ))
            }
        };
        machine.set_caller(identity);
        let key = self.insert_session(id, transport, base, machine, caller, now);
        if base != STANDALONE {
            self.share_session(key, now);
        }
        Ok(key)
    }

    /// Makes room for another session of a caller, or refuses it. Few clients end their sessions, so a
    /// caller with all of its share gives up those that it left.
    pub(super) fn check_session_limits(
        &mut self,
        caller: Option<Key>,
        request: Option<&RequestId>,
        now: Instant,
    ) -> Result<(), Response> {
        let most = self.options.limits.sessions_per_caller_max;
        let greedy = caller.filter(|caller| self.callers.sessions(*caller) >= most);
        if greedy.is_some_and(|caller| !self.displace_session_of(caller, false, now)) {
            return Err(SharedResource::Sessions.refusal(Exhausted::Share).to_response(request));
        }
        let has_room = self.sessions.len() < self.options.limits.sessions_max;
        // An unknown caller may be anyone, and must not displace the sessions of others.
        if !has_room && (caller.is_none() || !self.displace_session(now)) {
            return Err(SharedResource::Sessions.refusal(Exhausted::Total).to_response(request));
        }
        Ok(())
    }

    /// Adds a session whose streams have the number `base` and those after it.
    pub(super) fn insert_session(
        &mut self,
        id: SessionId,
        transport: Transport,
        base: u32,
        mut machine: Box<peer::Server>,
        caller: Option<Key>,
        now: Instant,
    ) -> Key {
        let session_key = id.key();
        machine.set_session_key(session_key);
        let session = Session {
            id,
            transport,
            next_stream: base + 1,
            open: 0,
            finished: BTreeSet::new(),
            recorded: false,
            account: self.callers.account(caller),
            last_used: now,
            older: NO_SLOT,
            newer: NO_SLOT,
        };
        let streams = Streams::new(Stream::new(base));
        let session = Some(session);
        let connection = Connection { machine, caller, session, streams };
        let key = self.connections.insert(connection);
        self.sessions.insert_hashed(session_key.to_number(), key.to_number());
        self.callers.open_session(caller);
        self.link_session(key);
        self.arm_connection(key, now);
        key
    }

    /// Prepares the standalone stream once the revision of the session is known: its messages get
    /// ids.
    pub(super) fn prime_standalone(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (resumes, polls) = (connection.resumes(), connection.polls());
        if let Some(stream) = connection.streams.get_mut(STANDALONE) {
            (stream.resumable, stream.primes) = (resumes, polls);
        }
    }

    /// Finds the session that a request names.
    // MCP 2025-11-25 basic/transports#session-management [SESS-006] [SESS-008]
    // MCP 2025-11-25 security-best-practices#session-hijacking [SESS-014]: for another principal it
    // does not exist.
    pub(super) fn find_session(
        &mut self,
        head: &RequestHead<'_>,
        principal: Option<&Principal>,
        request: Option<&RequestId>,
    ) -> Result<Key, Response> {
        let Some(id) = head.session_id else {
            let message = "`Mcp-Session-Id` is missing: send `initialize` first";
            return Err(refusal(Status::BAD_REQUEST, request, message));
        };
        let id = SessionId::parse(id);
        if let Some(id) = &id
            && self.shared.is_some()
        {
            self.note_missing(id);
        }
        id.and_then(|id| self.session_of(id, principal, Transport::Streamable))
            .ok_or_else(|| no_session(request))
    }

    // MCP 2025-11-25 security-best-practices#session-hijacking [SESS-012] [SESS-014]: a session id
    // is no authentication; each request must authenticate its sender.
    pub(super) fn session_of(
        &self,
        id: SessionId,
        principal: Option<&Principal>,
        transport: Transport,
    ) -> Option<Key> {
        let key = self.key_of_session(&id)?;
        let connection = self.connections.get(key)?;
        let same = connection.session.as_ref().is_some_and(|s| s.transport == transport);
        (same && connection.machine.caller().principal() == principal).then_some(key)
    }

    /// Returns the connection of the session with this id, independent of its principal.
    pub(super) fn key_of_session(&self, id: &SessionId) -> Option<Key> {
        let is_named = |number| {
            let connection = self.connections.get(Key::from_number(number));
            let session = connection.and_then(|connection| connection.session.as_ref());
            session.is_some_and(|session| session.id == *id)
        };
        let hash = id.key().to_number();
        self.sessions.find_hashed(hash, &is_named).map(Key::from_number)
    }

    /// Returns the id of the session with this key.
    pub(crate) fn id_of_session(&self, session: SessionKey) -> Option<&SessionId> {
        let number = self.sessions.find_hashed(session.first().to_number(), &|_| true)?;
        Some(&self.connections.get(Key::from_number(number))?.session.as_ref()?.id)
    }

    /// Returns whether this server has the session with this key.
    fn has_session(&self, session: SessionKey) -> bool {
        let is_current = |number| {
            let connection = self.connections.get(Key::from_number(number));
            connection.is_some_and(|it| it.machine.caller().session() == Some(session))
        };
        let hash = session.first().to_number();
        self.sessions.find_hashed(hash, &is_current).is_some()
    }

    /// Notes a session whose items have to be removed from the catalog, if it has some.
    pub(super) fn note_ended(&mut self, session: SessionKey) {
        if self.server_config.catalog.restricts_session(session) {
            self.ended_sessions.push(session);
        }
    }

    /// Notes sessions that had ended before the catalog got items for them.
    pub(super) fn note_late_items(&mut self, announcement: &Announcement) {
        for (_, audience) in &announcement.to_some {
            for session in audience.sessions() {
                if !self.has_session(*session) {
                    self.note_ended(*session);
                }
            }
        }
    }

    /// Returns a session that has ended, and that items of the catalog are for. Remove them with
    /// [`Catalog::remove_session`]. Poll it together with
    /// [`poll_event`](Self::poll_event); the handler layer does.
    ///
    /// On a node of a cluster, a session also ends when the node drops its copy of it.
    ///
    /// [`Catalog::remove_session`]: crate::catalog::Catalog::remove_session
    #[must_use]
    pub fn poll_ended_session(&mut self) -> Option<SessionKey> {
        loop {
            let session = self.ended_sessions.pop()?;
            // Its items may have been removed since it ended.
            if self.server_config.catalog.restricts_session(session) {
                return Some(session);
            }
        }
    }

    /// Returns the key of the session that a request names, if it is a session of its sender.
    #[must_use]
    pub fn session_key(&self, head: &RequestHead<'_>, caller: &Caller) -> Option<SessionKey> {
        let id = SessionId::parse(head.session_id?)?;
        let key = self.session_of(id, caller.principal(), Transport::Streamable)?;
        self.connections.get(key)?.machine.caller().session()
    }

    /// Opens or resumes a stream of a session.
    // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HSRV-013]
    pub(super) fn get(
        &mut self,
        head: &RequestHead<'_>,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<ExchangeId, Response> {
        self.check_legacy_version(head)?;
        let key = self.find_session(head, sender.identity.principal(), None)?;
        let Some(connection) = self.connections.get_mut(key) else { return Err(no_session(None)) };
        let polls = connection.polls();
        let first_number = connection.streams.first_number();
        let (number, start) = match head.last_event_id {
            None => (first_number, unread(connection)),
            Some(text) => resume(connection, text)?,
        };
        let stored = match start {
            Start::Behind(_) if !self.store.is_external() => {
                // A reader without an event id gets the available events.
                if head.last_event_id.is_some() {
                    return Err(refusal(Status::GONE, None, GONE));
                }
                None
            }
            Start::Behind(sequence) => {
                self.check_replays(key)?;
                Some(sequence)
            }
            _ => None,
        };
        let before = self.detach(key, number);
        let Some(stream) = self.connections.get_mut(key).and_then(|it| it.streams.get_mut(number))
        else {
            return Err(refusal(Status::GONE, None, GONE));
        };
        let (already_open, length) = (stream.opened, stream.log.len());
        stream.open();
        match start {
            // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-006]
            Start::At(offset) => stream.resume_at(offset),
            _ if stored.is_some() => {}
            _ => {
                stream.behind = None;
                // A new reader has no event id yet with which to resume.
                if already_open {
                    stream.prime();
                }
            }
        }
        let grown = stream.log.len();
        self.log_changed(key, length, grown);
        self.record_ids(key, number);
        // The previous reader has lost its connection unnoticed; the new one replaces it.
        // MCP 2025-11-25 basic/transports#multiple-connections [HSRV-017]
        if let Some(before) = before {
            self.end_exchange(before, None, now);
        }
        let state = if stored.is_some() { State::Reading } else { State::Opening };
        let mut exchange = Exchange::new(Some(key), number, state);
        exchange.polls = polls;
        let exchange = self.open_exchange(exchange, sender.caller);
        self.join_session(key, number, exchange, now);
        match stored {
            Some(sequence) => self.begin_replay(key, number, sequence, now),
            None => self.make_ready(exchange),
        }
        if self.closing && number == first_number {
            self.close_after_the_rest(exchange);
        }
        Ok(ExchangeId(exchange))
    }

    /// Makes an exchange the reader of a stream.
    pub(super) fn join_session(&mut self, key: Key, number: u32, exchange: Key, now: Instant) {
        let Some(Connection { session, streams, .. }) = self.connections.get_mut(key) else {
            return;
        };
        if let (Some(session), Some(stream)) = (session, streams.get_mut(number)) {
            stream.reader = Some(exchange);
            session.open += 1;
            session.last_used = now;
        }
        self.touch_session(key);
    }

    /// Ends a session on request of its client.
    // MCP 2025-11-25 basic/transports#session-management [SESS-010]
    pub(super) fn delete(
        &mut self,
        head: &RequestHead<'_>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<ExchangeId, Response> {
        self.check_legacy_version(head)?;
        let key = self.find_session(head, principal, None)?;
        self.end_session(key, now);
        let head = ResponseHead::new(Status::NO_CONTENT, None);
        Ok(self.respond_whole(Response { head, body: Vec::new() }))
    }

    /// Ends a session: its requests are cancelled and its streams end.
    // MCP 2025-11-25 basic/transports#session-management [SESS-007] [SSE-003]
    pub(super) fn end_session(&mut self, key: Key, now: Instant) {
        if self.shared.is_some() {
            self.record_end(key, STANDALONE);
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.machine.abandon(now);
        let readers: Vec<Key> =
            connection.streams.iter().filter_map(|stream| stream.reader).collect();
        self.collect_events(key);
        self.forget_session(key);
        for reader in readers {
            // MCP 2025-11-25 basic/transports#session-management [SESS-008]
            self.end_exchange(reader, Some(no_session(None)), now);
        }
    }

    /// Removes a session without notifying its client. Complete responses are still sent.
    pub(super) fn forget_session(&mut self, key: Key) {
        self.unlink_session(key);
        let Some(connection) = self.connections.remove(key) else { return };
        self.connection_deadlines.clear(key.slot);
        if let Some(shared) = &mut self.shared {
            shared.forget_session(key);
        }
        if let Some(session) = connection.session {
            let hash = session.id.key().to_number();
            self.sessions.remove_hashed(hash, &|known| known == key.to_number());
            if let Some(session) = connection.machine.caller().session() {
                self.note_ended(session);
            }
            let replays = connection.streams.iter().filter(|it| it.replay.is_some()).count();
            self.replays -= replays;
            self.callers.end_replays(connection.caller, u32::try_from(replays).unwrap_or(u32::MAX));
            let logged = connection.streams.iter().map(|stream| stream.log.len()).sum::<usize>();
            self.log_changed_of(connection.caller, logged, 0);
            self.callers.close_session(connection.caller);
            self.store.forget(&session, None, connection.machine.caller().principal());
            self.finished_count -= session.finished.len();
            self.compact_finished();
        }
        for stream in connection.streams.iter().filter(|stream| stream.answers != Tag::NONE) {
            self.forget_answer(key, stream.number, stream.answers);
        }
    }

    // ------------------------------------------------------------------ HTTP+SSE

    /// Opens the event stream of a 2024-11-05 client, which is a session.
    // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-001] [LSSE-002]
    pub(super) fn open_event_stream(
        &mut self,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<ExchangeId, Response> {
        let path = self.options.message_path.clone().unwrap_or_default();
        let key = self.new_session(Transport::EventStream, sender, None, now)?;
        let exchange = Exchange::new(Some(key), STANDALONE, State::Opening);
        let exchange = self.open_exchange(exchange, sender.caller);
        self.join_session(key, STANDALONE, exchange, now);
        if let Some(Connection { session: Some(session), streams, .. }) =
            self.connections.get_mut(key)
            && let Some(stream) = streams.get_mut(STANDALONE)
        {
            let endpoint = alloc::format!("{path}?sessionId={}", session.id.as_str());
            stream.open();
            stream.log.push(Some("endpoint"), None, endpoint.as_bytes());
            // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-004]
            stream.kind = Some("message");
            let after = stream.log.len();
            self.log_changed(key, 0, after);
        }
        self.make_ready(exchange);
        Ok(ExchangeId(exchange))
    }

    /// Handles a message of a 2024-11-05 client.
    pub(super) fn message<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: Body<'_, 'f>,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<(ExchangeId, Option<peer::Event<'f>>), Response> {
        let request = named_request(&body.frame);
        let id = head.query.0.split('&').find_map(|pair| pair.strip_prefix("sessionId="));
        let Some(id) = id else {
            let message = "`sessionId` is missing: post to the URL in the `endpoint` event";
            return Err(refusal(Status::BAD_REQUEST, request, message));
        };
        let key = SessionId::parse(id.as_bytes())
            .and_then(|id| self.session_of(id, sender.identity.principal(), Transport::EventStream))
            .ok_or_else(|| match self.shared {
                Some(_) => refusal(Status::NOT_FOUND, request, OF_ANOTHER_NODE),
                None => no_session(request),
            })?;
        self.check_not_closing(&body.frame)?;
        Ok(self.deliver(key, body, sender, now))
    }
}

pub(super) fn no_session(request: Option<&RequestId>) -> Response {
    refusal(Status::NOT_FOUND, request, "there is no such session: send `initialize`")
}

/// A session of HTTP+SSE is a single response, so only its node can write the answers.
const OF_ANOTHER_NODE: &str = "this node has no such session: messages of HTTP+SSE (2024-11-05) must reach the node \
                               of their event stream, to which the load balancer has to send them";

pub(super) const GONE: &str = "the events after this one are no longer available";

/// The position where the reader of a stream starts.
#[derive(Clone, Copy)]
enum Start {
    /// At the events that no reader has taken yet.
    Unread,
    /// At this position of the log.
    At(u64),
    /// At the event with this number, which the log no longer contains.
    Behind(u64),
}

/// Returns where a reader of the standalone stream starts if it has no event id.
fn unread(connection: &Connection) -> Start {
    let stream = connection.streams.get(STANDALONE);
    stream.and_then(Stream::position_behind).map_or(Start::Unread, Start::Behind)
}

/// Returns the stream of an event, and the position after it.
// MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-007]
fn resume(connection: &Connection, text: &[u8]) -> Result<(u32, Start), Response> {
    let never =
        || refusal(Status::BAD_REQUEST, None, "`Last-Event-ID` is not an event of this session");
    let id = EventId::parse(text).ok_or_else(never)?;
    let next_stream = connection.session.as_ref().map_or(0, |session| session.next_stream);
    let Some(stream) = connection.streams.get(id.stream) else {
        let was = id.stream < next_stream;
        return Err(if was { refusal(Status::GONE, None, GONE) } else { never() });
    };
    match stream.after(id.sequence) {
        Resume::At(offset) => Ok((id.stream, Start::At(offset))),
        Resume::Dropped => Ok((id.stream, Start::Behind(id.sequence + 1))),
        Resume::Unknown => Err(never()),
    }
}

/// The state of a legacy session in addition to its protocol state.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) transport: Transport,
    /// The number of the next stream.
    pub(super) next_stream: u32,
    /// The number of open exchanges.
    pub(super) open: usize,
    /// The numbers of the finished streams that are kept.
    pub(super) finished: BTreeSet<u32>,
    /// Whether any of its events was stored.
    pub(super) recorded: bool,
    /// The share of the store's queue that its actions use.
    pub(super) account: Account,
    /// The last time at which it was used.
    pub(super) last_used: Instant,
    /// The slots of its caller's sessions that were used before and after it.
    pub(super) older: u32,
    pub(super) newer: u32,
}

/// The transport of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// Each request has its own exchange, and one additional stream carries all other messages.
    Streamable,
    /// All messages to the client are sent on one event stream.
    // MCP 2024-11-05 basic/transports#http-with-sse [LSSE-004]
    EventStream,
}

/// The stream for messages that belong to no request.
pub(super) const STANDALONE: u32 = 0;
