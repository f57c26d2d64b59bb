//! Requests as they come in.

use alloc::vec::Vec;

use crate::http::{Content, ExchangeId, Principal, RequestHead, Response, ResponseHead, Status};
use crate::jsonrpc::{
    ErrorObject, Frame, Malformed, Message, RawJson, RequestId, RequestMessage, parse, write_error,
};
use crate::peer::metadata::Metadata;
use crate::peer::outbox::{Channel, Verdict};
use crate::peer::slab::Key;
use crate::peer::{Event, Violation};
use crate::protocol::{Era, Method, Revision};
use crate::{Instant, Revisions};

use super::admission::{Route, named_revision, refusal};
use super::answers::status_of;
use super::exchange::{Exchange, State};
use super::session::{STANDALONE, Transport};
use super::stream::Stream;
use super::{Connection, Server, stamped};

/// The channel of the only request on a modern connection.
const ONLY: u32 = 0;

/// What comes of a request: its exchange, and an event at most.
type Handled<'f> = (ExchangeId, Option<Event<'f>>);

impl Server {
    /// Takes a whole request, and returns what the application must know of it.
    ///
    /// `principal` says who sends it, where that has been verified; see [`Principal`]. The exchange
    /// stands until its response is complete or its client has gone.
    pub fn handle_request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        principal: Option<&Principal>,
        now: Instant,
    ) -> (ExchangeId, Option<Event<'f>>) {
        let handled = match self.route(head) {
            Ok(_) if body.len() > self.options.limits.body_bytes_max => Err(self.body_too_long()),
            Ok(Route::Post) => self.post(head, body, principal, now),
            Ok(Route::Message) => self.message(head, body, principal, now),
            Ok(Route::Get) => self.get(head, principal, now).map(|exchange| (exchange, None)),
            Ok(Route::Delete) => self.delete(head, principal, now).map(|exchange| (exchange, None)),
            Ok(Route::EventStream) => {
                self.open_event_stream(principal, now).map(|exchange| (exchange, None))
            }
            Err(refused) => Err(refused),
        };
        handled.unwrap_or_else(|refused| (self.respond_whole(refused), None))
    }

    /// An exchange whose response is there already.
    pub(super) fn respond_whole(&mut self, response: Response) -> ExchangeId {
        let key = self.exchanges.insert(Exchange::new(None, ONLY, State::Whole(response)));
        self.make_ready(key);
        ExchangeId(key)
    }

    fn post<'f>(
        &mut self,
        head: &RequestHead<'_>,
        body: &'f [u8],
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        let frame = parse(body, self.blueprint.parse_limits());
        match &frame {
            Ok(Frame::Single(Message::Request(request))) => {
                let params = request.params.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT);
                let metadata = Metadata::read(params);
                let named = metadata.as_ref().is_ok_and(|meta| meta.protocol_version.is_some());
                if self.is_modern(head, named) {
                    self.check_modern(head, request, metadata)?;
                    return Ok(self.modern(frame, principal, now));
                }
            }
            // MCP 2026-07-28 basic/transports/streamable-http#sending-messages [HSRV-009] [HCLI-006]
            Ok(Frame::Single(Message::Notification(_))) if self.is_modern(head, false) => {
                return Ok((self.respond_whole(accepted()), None));
            }
            Ok(Frame::Single(Message::Response(_))) if self.is_modern(head, false) => {
                let message = "at this revision a client sends no responses";
                return Err(refusal(Status::BAD_REQUEST, message));
            }
            // A fresh connection says what is wrong with it.
            Err(_) if head.session_id.is_none() => return Ok(self.modern(frame, principal, now)),
            _ => {}
        }
        self.legacy(head, frame, principal, now)
    }

    /// Whether a message is of the modern era.
    // MCP 2026-07-28 basic/versioning#backward-compatibility-with-initialization-based-versions
    // [VER-016]
    fn is_modern(&self, head: &RequestHead<'_>, named_in_body: bool) -> bool {
        if self.revisions.intersection(Revisions::MODERN).is_empty() {
            return false;
        }
        if self.revisions.intersection(Revisions::LEGACY).is_empty() {
            return true;
        }
        named_in_body || named_revision(head).is_some_and(|named| named.era() == Era::Modern)
    }

    // ------------------------------------------------------------------ modern

    /// Checks what must hold of a modern request before its revision and method are looked at.
    // MCP 2026-07-28 basic/index#_meta [META-009] [HSRV-023]
    fn check_modern(
        &self,
        head: &RequestHead<'_>,
        request: &RequestMessage<'_>,
        metadata: Result<Metadata<'_>, &'static str>,
    ) -> Result<(), Response> {
        let refuse = |error: &ErrorObject<'_>| refuse_request(Some(&request.id), error);
        let metadata = metadata.map_err(|what| refuse(&ErrorObject::invalid_params(what)))?;
        let lacking = if metadata.protocol_version.is_none() {
            Some("`_meta` lacks `io.modelcontextprotocol/protocolVersion`")
        } else if metadata.client_capabilities.is_none() {
            Some("`_meta` lacks `io.modelcontextprotocol/clientCapabilities`")
        } else {
            metadata.modern_fault
        };
        if let Some(what) = lacking {
            return Err(refuse(&ErrorObject::invalid_params(what)));
        }
        let params = request.params.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT);
        self.check_headers(head, &request.method, params, &metadata).map_err(|error| refuse(&error))
    }

    /// A modern request, which is a connection of its own.
    fn modern<'f>(
        &mut self,
        frame: Result<Frame<'f>, Malformed>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Handled<'f> {
        let machine = self.fresh_machine();
        let mut stream = Stream::new(ONLY);
        let (connection, exchange) = {
            let connection = Connection {
                machine,
                principal: principal.cloned(),
                session: None,
                streams: Vec::new(),
            };
            let key = self.connections.insert(connection);
            let exchange = self.exchanges.insert(Exchange::new(Some(key), ONLY, State::Waiting));
            (key, exchange)
        };
        stream.reader = Some(exchange);
        let mut event = None;
        if let Some(entry) = self.connections.get_mut(connection) {
            entry.streams.push(stream);
            event = entry.machine.handle_posted(frame, Channel(ONLY), now).ok().flatten();
        }
        self.settle(connection, now);
        self.arm_waiting(exchange, now);
        (ExchangeId(exchange), event.map(|event| stamped(event, connection)))
    }

    // ------------------------------------------------------------------ legacy

    fn legacy<'f>(
        &mut self,
        head: &RequestHead<'_>,
        frame: Result<Frame<'f>, Malformed>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        check_legacy_version(head)?;
        let initialize = matches!(
            &frame,
            Ok(Frame::Single(Message::Request(request)))
                if Method::parse(&request.method) == Some(Method::Initialize)
        );
        if head.session_id.is_none() && initialize {
            return self.initialize(frame, principal, now);
        }
        let id = match &frame {
            Ok(Frame::Single(Message::Request(request))) => Some(&request.id),
            _ => None,
        };
        let session = self.find_session(head, principal, id)?;
        Ok(self.deliver(session, frame, now))
    }

    /// A request that opens a session, if it is in order.
    fn initialize<'f>(
        &mut self,
        frame: Result<Frame<'f>, Malformed>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<Handled<'f>, Response> {
        let key = self.new_session(Transport::Streamable, principal, now)?;
        let (exchange, event) = self.deliver(key, frame, now);
        let opened = self
            .connections
            .get(key)
            .is_some_and(|connection| connection.machine.session_revision().is_some());
        if opened {
            self.prime_standalone(key);
        } else {
            // The answer says why not. There is no session to remember.
            self.forget_session(key);
        }
        Ok((exchange, event))
    }

    /// Hands a frame to its session.
    pub(super) fn deliver<'f>(
        &mut self,
        key: Key,
        frame: Result<Frame<'f>, Malformed>,
        now: Instant,
    ) -> Handled<'f> {
        let answered =
            !matches!(frame, Ok(Frame::Single(Message::Notification(_) | Message::Response(_))));
        let Some(connection) = self.connections.get_mut(key) else {
            return (self.respond_whole(accepted()), None);
        };
        let Some(session) = &mut connection.session else {
            return (self.respond_whole(accepted()), None);
        };
        session.last_used = now;
        let id = session.id;
        if !answered || session.transport == Transport::EventStream {
            return self.acknowledge(key, frame, now);
        }
        let number = session.next_stream;
        session.next_stream = session.next_stream.wrapping_add(1).max(STANDALONE + 1);
        session.open += 1;
        let mut exchange = Exchange::new(Some(key), number, State::Waiting);
        let before = connection.machine.session_revision();
        exchange.session = before.is_none().then_some(id);
        let exchange = self.exchanges.insert(exchange);
        let mut stream = Stream::new(number);
        stream.reader = Some(exchange);
        connection.streams.push(stream);
        let event = connection.machine.handle_posted(frame, Channel(number), now).ok().flatten();
        let revision = connection.machine.session_revision();
        if let Some(stream) = connection.stream(number) {
            // MCP 2025-11-25 basic/transports#resumability-and-redelivery [RESUME-001]
            stream.resumable = revision.is_some_and(|revision| revision >= Revision::V2025_03_26);
            stream.primes = revision.is_some_and(|revision| revision >= Revision::V2025_11_25);
        }
        self.settle(key, now);
        self.arm_waiting(exchange, now);
        (ExchangeId(exchange), event.map(|event| stamped(event, key)))
    }

    /// Hands a frame to its session that gets nothing but an acknowledgement here.
    // MCP 2025-11-25 basic/transports#sending-messages-to-the-server [HSRV-008] [HSRV-010]
    fn acknowledge<'f>(
        &mut self,
        key: Key,
        frame: Result<Frame<'f>, Malformed>,
        now: Instant,
    ) -> Handled<'f> {
        let malformed = frame.is_err();
        let Some(connection) = self.connections.get_mut(key) else {
            return (self.respond_whole(accepted()), None);
        };
        let channel = Channel(STANDALONE);
        let flow = connection.machine.handle_posted(frame, channel, now);
        if let Some(session) = &mut connection.session {
            session.confirmed |= connection.machine.is_initialized();
        }
        self.settle(key, now);
        let response = match &flow {
            _ if malformed => refusal(Status::BAD_REQUEST, "the body is not a message"),
            Err(closed) => refusal(Status::BAD_REQUEST, &alloc::format!("{closed}")),
            // A late or a second answer does no harm.
            Ok(Some(Event::Violation(Violation::UnknownResponse(_)))) => accepted(),
            Ok(Some(Event::Violation(violation))) => {
                refusal(Status::BAD_REQUEST, &alloc::format!("{violation}"))
            }
            Ok(_) => accepted(),
        };
        let event = flow.ok().flatten().map(|event| stamped(event, key));
        (self.respond_whole(response), event)
    }
}

/// Refuses a version that no legacy message can name.
// MCP 2025-11-25 basic/transports#protocol-version-header [HSRV-029] [HSRV-030]
pub(super) fn check_legacy_version(head: &RequestHead<'_>) -> Result<(), Response> {
    let legacy = |revision: Revision| revision.era() == Era::Legacy;
    if head.protocol_version.is_some() && !named_revision(head).is_some_and(legacy) {
        let message = "`MCP-Protocol-Version` names no version that this server speaks";
        return Err(refusal(Status::BAD_REQUEST, message));
    }
    Ok(())
}

/// The response to a message that needs no answer.
pub(super) fn accepted() -> Response {
    Response { head: ResponseHead::new(Status::ACCEPTED, None), body: Vec::new() }
}

/// A response that refuses one request of the modern era.
fn refuse_request(id: Option<&RequestId>, error: &ErrorObject<'_>) -> Response {
    let mut body = Vec::new();
    write_error(&mut body, id, error);
    let status = status_of(Verdict::Refused(error.code), Era::Modern);
    Response { head: ResponseHead::new(status, Some(Content::Json)), body }
}
